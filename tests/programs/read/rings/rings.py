"""A generator learns to place points on a ring, against a critic."""
import keras
import numpy as np
import tensorflow as tf

BATCH, NOISE, EPOCHS = 32, 4, 5
SUM = tf.distribute.ReduceOp.SUM


def points(rows=256, seed=4):
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 2 * np.pi, rows))
    radius = 1.5 + 0.1 * rng.normal(size=rows)
    real = np.stack([radius * np.cos(angle) + 0.5, radius * np.sin(angle)], -1)
    return real.astype("float32"), rng.normal(size=(rows, NOISE)).astype("float32")


def mlp(entries, *widths, seed):
    net = keras.Sequential([keras.Input((entries,))])
    for place, width in enumerate(widths):
        init = keras.initializers.GlorotNormal(seed + place)
        last = place == len(widths) - 1
        net.add(keras.layers.Dense(width, None if last else "tanh", kernel_initializer=init))
    return net


def mean(values):
    """The part of this replica in the mean over the batch."""
    return tf.reduce_sum(values) / BATCH


def slopes(tape, loss, net):
    return tape.gradient(loss, net.trainable_variables)


def make_round(strategy, generator, critic, for_generator, for_critic, drift, penalty):
    def judge(real, noise):
        fake = generator(noise, training=True)
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(real)
                on_real = critic(real, training=True)
            steep = tf.reduce_sum(tf.square(inner.gradient(on_real, real)), -1)
            on_fake = critic(fake, training=True)
            losses = tf.nn.softplus(drift - on_real) + tf.nn.softplus(on_fake - drift)
            loss = mean(losses) + penalty * mean(steep)
        for_critic.apply_gradients(zip(slopes(tape, loss, critic), critic.trainable_variables))
        drift.assign(0.8 * drift + 0.2 * tf.reduce_mean(on_real))
        return loss

    def forge(noise):
        with tf.GradientTape() as tape:
            fake = generator(noise, training=True)
            loss = mean(tf.nn.softplus(-critic(fake, training=True)))
        for_generator.apply_gradients(zip(slopes(tape, loss, generator), generator.trainable_variables))
        return loss

    def both(real, noise):
        return judge(real, noise), forge(noise)

    @tf.function
    def play(real, noise):
        return [strategy.reduce(SUM, part, None) for part in strategy.run(both, (real, noise))]

    return play


def main():
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        generator, critic = mlp(NOISE, 16, 2, seed=10), mlp(2, 16, 16, 1, seed=20)
        for_generator = keras.optimizers.Adam(0.01, beta_1=0.5)
        for_critic = keras.optimizers.Adam(0.02, beta_1=0.5)
        for_generator.build(generator.trainable_variables)
        for_critic.build(critic.trainable_variables)
        drift = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)
        penalty = tf.Variable(0.4, trainable=False)
    play = make_round(strategy, generator, critic, for_generator, for_critic, drift, penalty)
    local = tf.data.Dataset.from_tensor_slices(points()).batch(BATCH)
    data = strategy.experimental_distribute_dataset(local)
    for epoch in range(EPOCHS):
        for real, noise in data:
            judged, forged = play(real, noise)
        penalty.assign(penalty * 0.5)
        print(f"{epoch}: critic {judged:.4f} generator {forged:.4f}")
    real, noise = points()
    made = generator(noise).numpy()
    radius = np.hypot(*(made - real.mean(0)).T).mean()
    print(f"critic {judged:.4f} generator {forged:.4f} radius {radius:.4f} drift {drift.numpy():.4f} "
          f"centre {made.mean(0)[0]:.4f} {made.mean(0)[1]:.4f}")


main()
