"""A linear classifier on what the encoder has learned; the encoder itself stays as it is."""
import keras
import tensorflow as tf

from .data import labelled
from .networks import make_encoder, make_probe


def load_encoder(folder):
    encoder = make_encoder()
    path = tf.train.latest_checkpoint(f"{folder}/contrastive")
    tf.train.Checkpoint(encoder=encoder).restore(path).expect_partial()
    encoder.trainable = False
    return encoder


def probe(strategy, folder, epochs=6):
    with strategy.scope():
        encoder = load_encoder(folder)
        classifier = keras.Sequential([encoder, make_probe()])
        classifier.compile(
            keras.optimizers.SGD(0.1, momentum=0.9),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
    history = classifier.fit(labelled(96, 16, seed=2), epochs=epochs, verbose=0).history
    for epoch, (loss, accuracy) in enumerate(zip(history["loss"], history["accuracy"])):
        print(f"probe {epoch}: loss {loss:.4f} accuracy {accuracy:.4f}")
    return classifier.evaluate(labelled(128, 32, seed=3), verbose=0)
