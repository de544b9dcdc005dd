"""python -m anomaly.train [--epochs 9] [--learning-rate 0.02] ..."""
import keras
import numpy as np
import tensorflow as tf

from .config import read_config
from .data import Windows
from .model import squared_errors
from .state import RunState


def steps(config, strategy, state):
    """The compiled step of the training and the one of the check."""
    model, optimizer = state.model, state.optimizer

    def learn(rows):
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            codes = model.codes(rows)
            errors = squared_errors(rows, model.decoder(codes))
            sparse = config.sparsity * tf.reduce_sum(tf.abs(codes), axis=-1)
            loss = tf.nn.compute_average_loss(errors + sparse, global_batch_size=config.global_batch)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        mean = context.all_reduce("SUM", tf.reduce_sum(errors)) / config.global_batch
        state.typical.assign(config.running * state.typical + (1.0 - config.running) * mean)
        return loss

    def check(rows):
        errors = squared_errors(rows, model(rows))
        return tf.reduce_sum(errors), tf.cast(tf.size(errors), tf.float32)

    @tf.function
    def train_step(rows):
        return strategy.reduce("SUM", strategy.run(learn, args=(rows,)), axis=None)

    @tf.function
    def check_step(rows):
        total, count = strategy.run(check, args=(rows,))
        return strategy.reduce("SUM", total, axis=None), strategy.reduce("SUM", count, axis=None)

    return train_step, check_step


def mean_error(strategy, check_step, dataset):
    total = count = 0.0
    for rows in strategy.experimental_distribute_dataset(dataset):
        part, number = check_step(rows)
        total += float(part)
        count += float(number)
    return total / count


def alarms(config, state, windows):
    """Flags readings whose error is far above the typical one; returns the scores of the flags."""
    errors = squared_errors(windows.mixed, state.model(windows.mixed)).numpy()
    reference = squared_errors(windows.healthy, state.model(windows.healthy)).numpy()
    limit = max(float(np.quantile(reference, config.quantile)), float(state.typical.numpy()))
    flags = errors > limit
    recall = (flags & windows.ill).sum() / windows.ill.sum()
    precision = (flags & windows.ill).sum() / max(flags.sum(), 1)
    return recall, precision, limit


def main():
    config = read_config()
    keras.utils.set_random_seed(config.seed)
    strategy = tf.distribute.MirroredStrategy()
    windows = Windows(config)
    state = RunState(config, strategy)
    if state.restored:
        print(f"goes on in epoch {int(state.progress.epoch.numpy())}")
    train_step, check_step = steps(config, strategy, state)
    stop = int(state.progress.waited.numpy()) >= config.patience
    error = mean_error(strategy, check_step, windows.checking())
    for epoch in range(int(state.progress.epoch.numpy()), config.epochs):
        if stop:
            print("no progress any more")
            break
        losses = [float(train_step(rows)) for rows in strategy.distribute_datasets_from_function(windows.training_fn(epoch))]
        error = mean_error(strategy, check_step, windows.checking())
        stop = state.progress.judge(error, config)
        state.write()
        print(f"epoch {epoch}: {len(losses)} updates, loss {np.mean(losses):.5f}, check {error:.5f}, waited {int(state.progress.waited.numpy())}")
    recall, precision, limit = alarms(config, state, windows)
    print(f"recall {recall:.3f} precision {precision:.3f}")
    print(f"done: check {error:.6f} limit {limit:.6f} typical {float(state.typical.numpy()):.6f} best {float(state.progress.best.numpy()):.6f}")


if __name__ == "__main__":
    main()
