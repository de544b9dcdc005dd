"""Woven textures from noise: a small GAN with an optimizer for each side.

Every epoch is kept in looms/, and a run that was stopped goes on after the last one.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

SIZE, NOISE = 8, 6
BATCH, SWATCHES, EPOCHS = 32, 192, 4

strategy = tf.distribute.MirroredStrategy()


def swatches(seed=4):
    """Photographs of twill: stripes of one slope, any phase, some grain."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:SIZE, :SIZE]
    phase = rng.uniform(0, 2 * np.pi, (SWATCHES, 1, 1))
    twill = np.sin(2 * np.pi * (x + y) / 4 + phase)
    return (0.8 * twill + 0.1 * rng.normal(size=twill.shape))[..., None].astype("float32")


def weaver():
    return keras.Sequential([
        keras.Input((NOISE,)),
        keras.layers.Dense(2 * 2 * 12),
        keras.layers.BatchNormalization(momentum=0.8, synchronized=True),
        keras.layers.LeakyReLU(0.2),
        keras.layers.Reshape((2, 2, 12)),
        keras.layers.Conv2DTranspose(8, 4, 2, "same"),
        keras.layers.LeakyReLU(0.2),
        keras.layers.Conv2DTranspose(1, 4, 2, "same", activation="tanh"),
    ], name="weaver")


def inspector():
    return keras.Sequential([
        keras.Input((SIZE, SIZE, 1)),
        keras.layers.Conv2D(8, 4, 2, "same"),
        keras.layers.LeakyReLU(0.2),
        keras.layers.Flatten(),
        keras.layers.Dense(1),
    ], name="inspector")


with strategy.scope():
    generator, critic = weaver(), inspector()
    generator_optimizer = keras.optimizers.SGD(0.02, momentum=0.8)
    critic_optimizer = keras.optimizers.SGD(0.02, momentum=0.8)
    generator_optimizer.build(generator.trainable_variables)
    critic_optimizer.build(critic.trainable_variables)
epochs_done = tf.Variable(0, dtype=tf.int64, trainable=False)
checkpoint = tf.train.Checkpoint(
    generator=generator, critic=critic, epochs_done=epochs_done,
    generator_optimizer=generator_optimizer, critic_optimizer=critic_optimizer)
manager = tf.train.CheckpointManager(checkpoint, "looms", max_to_keep=2)


def bales(real, epoch):
    """The swatches of an epoch in its order, each with the noise it is compared with."""
    rng = np.random.default_rng([8, epoch])
    order = rng.permutation(len(real))
    noise = rng.normal(size=(len(real), NOISE)).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((real[order], noise)).batch(BATCH, drop_remainder=True)
    return strategy.experimental_distribute_dataset(data)


def judged(logits, real):
    each = tf.nn.sigmoid_cross_entropy_with_logits(tf.fill(tf.shape(logits), 1.0 if real else 0.0), logits)
    return tf.nn.compute_average_loss(each[:, 0], global_batch_size=BATCH)


def update(tape, optimizer, loss, model):
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


def on_part(real, noise):
    with tf.GradientTape() as critic_tape:
        fake = generator(noise, training=True)
        critic_loss = judged(critic(real), True) + judged(critic(fake), False)
    update(critic_tape, critic_optimizer, critic_loss, critic)
    with tf.GradientTape() as generator_tape:
        fooled = judged(critic(generator(noise, training=True)), True)
    update(generator_tape, generator_optimizer, fooled, generator)
    return critic_loss, fooled


@tf.function
def step(real, noise):
    shares = strategy.run(on_part, args=(real, noise))
    return [strategy.reduce("SUM", share, axis=None) for share in shares]


def main():
    keras.utils.set_random_seed(6)
    real = swatches()
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint).assert_existing_objects_matched()
        print(f"goes on after epoch {int(epochs_done)}")
    while int(epochs_done) < EPOCHS:
        losses = [[float(each) for each in step(*bale)] for bale in bales(real, int(epochs_done))]
        epochs_done.assign_add(1)
        manager.save()
        print("epoch {}: inspector {:.4f}, weaver {:.4f}".format(int(epochs_done), *np.mean(losses, axis=0)), flush=True)
    noise = np.random.default_rng(1).normal(size=(64, NOISE)).astype("float32")
    cloth = generator(noise, training=False).numpy()
    slope = np.mean(cloth[:, 1:, :-1] * cloth[:, :-1, 1:]) / np.mean(cloth**2)
    sizes = [sum(float(np.abs(w.numpy()).sum()) for w in model.trainable_variables) for model in (generator, critic)]
    print(f"cloth {np.abs(cloth).mean():.4f} slope {slope:.4f} weaver {sizes[0]:.3f} inspector {sizes[1]:.3f}")


if __name__ == "__main__":
    main()
