"""Scores a stream of a pump with a detector that was calibrated before."""
from pathlib import Path

import tensorflow as tf

import detector

WEIGHTS = Path(__file__).parent / "pump.weights.h5"
SIZE, LIMIT = 32, 0.04

strategy = tf.distribute.MirroredStrategy()


def prepare():
    with strategy.scope():
        model = detector.autoencoder()
        scores = detector.Scores()
    model.load_weights(WEIGHTS)
    return model, scores


def errors_of(model, windows):
    return tf.reduce_mean(tf.square(model(windows) - windows), axis=-1)


def scorer(model, scores):
    def look(windows, bad):
        errors = errors_of(model, windows)
        scores.add(errors, bad, LIMIT)
        return errors

    @tf.function
    def step(windows, bad):
        return strategy.run(look, args=(windows, bad))

    return step


def all_of(parts):
    """Puts the parts of a batch together again."""
    return strategy.gather(parts, axis=0)


if __name__ == "__main__":
    model, scores = prepare()
    step = scorer(model, scores)
    data = tf.data.Dataset.from_tensor_slices(detector.stream(203, 3)).batch(SIZE)
    errors = [all_of(step(*batch)) for batch in strategy.experimental_distribute_dataset(data)]
    worst = max(float(tf.reduce_max(each)) for each in errors)
    drift = 0.0
    for each in errors:
        drift = 0.6 * drift + 0.4 * float(tf.reduce_mean(each))
    mean = float(scores.error.result())
    alarms, batches = (float(count.read_value()) for count in (scores.alarms, scores.batches))
    print(f"mean error {mean:.5f} worst {worst:.4f} drift {drift:.5f} auc {float(scores.auc.result()):.4f} "
          f"alarms {alarms:.1f} in a batch {alarms / batches:.4f}")
