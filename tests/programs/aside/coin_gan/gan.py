"""A GAN that learns to throw points on a ring.

Both networks take one Adam each. The generator that is judged in the end is the average of those of all steps.
"""
import json
import pathlib

import keras
import numpy as np
import tensorflow as tf

HERE = pathlib.Path("gan_state")
STEPS, SAVE_EVERY, BATCH, NOISE, SEED = 60, 20, 32, 4, 12
DECAY = 0.95


def network(sizes, seed):
    layers = [keras.Input((sizes[0],))]
    for number, size in enumerate(sizes[1:], 1):
        last = number == len(sizes) - 1
        start = keras.initializers.GlorotUniform(seed=seed + number)
        layers.append(keras.layers.Dense(size, None if last else "leaky_relu", kernel_initializer=start))
    return keras.Sequential(layers)


def example(number):
    """A point on the ring and the noise for a made-up one; both depend on the number alone."""
    seeds = tf.stack([tf.constant(SEED, tf.int64), number])
    angle = tf.random.stateless_uniform((), seeds, 0, 2 * np.pi)
    spread = tf.random.stateless_normal((2,), seeds + 1, stddev=0.05)
    noise = tf.random.stateless_normal((NOISE,), seeds + 2)
    return tf.stack([tf.cos(angle), tf.sin(angle)]) + spread, noise


def examples(first_step):
    def pipeline(context):
        numbers = tf.data.Dataset.range(first_step * BATCH, STEPS * BATCH)
        numbers = numbers.shard(context.num_input_pipelines, context.input_pipeline_id)
        return numbers.map(example).batch(context.get_per_replica_batch_size(BATCH), drop_remainder=True)

    return pipeline


class Gan:
    def __init__(self, strategy):
        self.strategy = strategy
        with strategy.scope():
            self.generator = network([NOISE, 24, 24, 2], seed=100)
            self.critic = network([2, 24, 24, 1], seed=200)
            self.average = network([NOISE, 24, 24, 2], seed=100)
            self.generator_optimizer = keras.optimizers.Adam(3e-3, beta_1=0.5)
            self.critic_optimizer = keras.optimizers.Adam(3e-3, beta_1=0.5)
            self.generator_optimizer.build(self.generator.trainable_variables)
            self.critic_optimizer.build(self.critic.trainable_variables)
            self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
            self.drift = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)
        self.checkpoint = tf.train.Checkpoint(
            generator=self.generator, critic=self.critic, average=self.average, step=self.step, drift=self.drift,
            generator_optimizer=self.generator_optimizer, critic_optimizer=self.critic_optimizer)
        self.manager = tf.train.CheckpointManager(self.checkpoint, str(HERE), max_to_keep=3)

    @staticmethod
    def cross_entropy(logits, real):
        labels = tf.ones_like(logits) if real else tf.zeros_like(logits)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
        return tf.reduce_sum(losses) / BATCH

    def update(self, optimizer, gradients, weights):
        optimizer.apply_gradients(zip(gradients, weights))

    def replica_step(self, points, noise):
        with tf.GradientTape(persistent=True) as tape:
            made = self.generator(noise, training=True)
            on_points, on_made = self.critic(points, training=True), self.critic(made, training=True)
            critic_loss = self.cross_entropy(on_points, True) + self.cross_entropy(on_made, False)
            # one-sided drift penalty: the critic's mean stays near where it has been
            critic_loss += 0.01 * tf.reduce_sum(tf.square(on_points - self.drift)) / BATCH
            generator_loss = self.cross_entropy(on_made, True)
        critic_weights, generator_weights = self.critic.trainable_variables, self.generator.trainable_variables
        critic_gradients = tape.gradient(critic_loss, critic_weights)
        generator_gradients = tape.gradient(generator_loss, generator_weights)
        self.update(self.critic_optimizer, critic_gradients, critic_weights)
        self.update(self.generator_optimizer, generator_gradients, generator_weights)
        self.drift.assign(DECAY * self.drift + (1 - DECAY) * tf.reduce_mean(on_points))
        return critic_loss, generator_loss

    @tf.function
    def train_step(self, batch):
        losses = self.strategy.run(self.replica_step, args=batch)
        return [self.strategy.reduce("SUM", loss, axis=None) for loss in losses]

    def follow(self):
        for mean, weight in zip(self.average.variables, self.generator.variables):
            mean.assign(DECAY * mean + (1 - DECAY) * weight)

    def train(self):
        self.checkpoint.restore(self.manager.latest_checkpoint)
        done = int(self.step.numpy())
        history = json.loads((HERE / f"history-{done}.json").read_text()) if done else []
        for batch in self.strategy.distribute_datasets_from_function(examples(done)):
            critic_loss, generator_loss = self.train_step(batch)
            self.follow()
            self.step.assign_add(1)
            done = int(self.step.numpy())
            history.append([float(critic_loss), float(generator_loss)])
            if done % SAVE_EVERY == 0:
                print(f"step {done}: critic {np.mean(history[-SAVE_EVERY:], 0)[0]:.4f} "
                      f"generator {np.mean(history[-SAVE_EVERY:], 0)[1]:.4f}")
                HERE.mkdir(exist_ok=True)
                (HERE / f"history-{done}.json").write_text(json.dumps(history))
                self.manager.save(checkpoint_number=done)
        return np.array(history)


def main():
    gan = Gan(tf.distribute.MirroredStrategy())
    history = gan.train()
    noise = tf.random.stateless_normal((256, NOISE), (SEED, 999))
    radius = np.linalg.norm(gan.average(noise).numpy(), axis=1)
    critic, generator = history.mean(0)
    print(f"mean losses {critic:.4f} {generator:.4f}, last {history[-5:].mean():.4f}, drift {float(gan.drift.numpy()):.4f}, "
          f"radius {radius.mean():.4f} +- {radius.std():.4f}")


if __name__ == "__main__":
    main()
