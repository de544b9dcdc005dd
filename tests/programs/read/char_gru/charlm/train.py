"""python -m charlm.train"""
import keras
import numpy as np
import tensorflow as tf

from .network import Average, CharModel, bits
from .session import Session
from .settings import Settings
from .text import Batches


def compiled(strategy, model, optimizer, tokens):
    def learn(codes, following):
        with tf.GradientTape() as tape:
            loss = bits(model(codes, training=True), following, tokens)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    def judge(codes, following):
        return bits(model(codes, training=False), following, tokens)

    def across(function):
        @tf.function
        def step(batch):
            shares = strategy.run(function, args=batch)
            return strategy.reduce(tf.distribute.ReduceOp.SUM, shares, axis=None)

        return step

    return across(learn), across(judge)


def mean_of(step, batches, after=lambda: None):
    values = []
    for batch in batches:
        values.append(step(batch))
        after()
    return float(np.mean([v.numpy() for v in values]))


def main():
    settings = Settings()
    keras.utils.set_random_seed(settings.seed)
    strategy = tf.distribute.MirroredStrategy()
    batches = Batches(settings, strategy)

    with strategy.scope():
        model = CharModel(settings.dim, settings.units)
        optimizer = keras.optimizers.Adam(settings.optim.rate, epsilon=1e-4)
        model(tf.zeros((1, settings.window), tf.int32))
        optimizer.build(model.trainable_variables)
        average = Average(model, settings.optim.ema)
        session = Session(settings.run_dir, model, optimizer, average)
        start = session.resume()

    learn, judge = compiled(strategy, model, optimizer, settings.tokens_per_step)
    for epoch in range(start, settings.epochs):
        loss = mean_of(learn, batches.training(epoch), after=average.update)
        held = mean_of(judge, batches.held_out())
        session.plateau(held, settings.optim.patience, settings.optim.shrink, settings.optim.min_delta)
        print(f"epoch {epoch} train {loss:.5f} held out {held:.5f} rate {float(optimizer.learning_rate.numpy()):.5f}")
        session.commit(epoch)

    plain = mean_of(judge, batches.held_out())
    for weight, shadow in average.pairs:
        weight.assign(shadow)
    averaged = mean_of(judge, batches.held_out())
    size = sum(float(tf.reduce_sum(tf.abs(w))) for w in model.trainable_variables)
    print(f"final: plain {plain:.6f} averaged {averaged:.6f} weights {size:.5f} best {float(session.best.numpy()):.6f}")


if __name__ == "__main__":
    main()
