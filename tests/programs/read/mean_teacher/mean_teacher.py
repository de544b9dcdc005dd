"""Mean teacher (Tarvainen & Valpola 2017) on two moons with 32 labels.  Resumes from its last checkpoint."""
import logging
import math
import sys

import numpy as np
import tensorflow as tf

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
log = logging.getLogger("mean_teacher")

STEPS = 240
SAVE_EVERY = 40
LABELLED, UNLABELLED = 16, 48          # in one batch
DECAY = 0.97
MAX_WEIGHT = 2.0


def moons(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    a = rng.uniform(0, math.pi, n)
    x = np.stack([np.cos(a) + y * 1.0, np.sin(a)], 1)
    x[:, 1] = np.where(y, 0.4 - np.sin(a), x[:, 1])
    x[:, 0] = np.where(y, 1 - np.cos(a), x[:, 0])
    return (x + 0.1 * rng.normal(size=x.shape)).astype("float32"), y.astype("float32")


X_LAB, Y_LAB = moons(32, 1)
X_UNL, _ = moons(2000, 2)
X_TEST, Y_TEST = moons(512, 3)


def batch_of(step):
    """The batch depends on the step alone, so that a restart needs no state of a generator."""
    rng = np.random.default_rng((5, step))
    i, j = rng.integers(0, 32, LABELLED), rng.integers(0, 2000, UNLABELLED)
    noise = lambda n: 0.05 * rng.normal(size=(n, 2)).astype("float32")
    return {
        "x": X_LAB[i], "y": Y_LAB[i],
        "u_student": X_UNL[j] + noise(UNLABELLED),
        "u_teacher": X_UNL[j] + noise(UNLABELLED),
    }


def net():
    glorot = tf.keras.initializers.GlorotUniform
    return tf.keras.Sequential([
        tf.keras.layers.Dense(24, activation="tanh", kernel_initializer=glorot(seed=1)),
        tf.keras.layers.Dense(24, activation="tanh", kernel_initializer=glorot(seed=2)),
        tf.keras.layers.Dense(1, kernel_initializer=glorot(seed=3)),
    ])


def rampup(step):
    phase = 1.0 - min(1.0, step / 100)
    return MAX_WEIGHT * math.exp(-5.0 * phase * phase)


def main():
    strategy = tf.distribute.MirroredStrategy()
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        student, teacher = net(), net()
        student.build((None, 2)), teacher.build((None, 2))
        optimizer = tf.keras.optimizers.Adam(5e-3)
        optimizer.build(student.trainable_variables)
        step_var = tf.Variable(0, dtype=tf.int64, trainable=False)
    for t, s in zip(teacher.variables, student.variables):
        t.assign(s)

    checkpoint = tf.train.Checkpoint(student=student, teacher=teacher, optimizer=optimizer, step=step_var)
    manager = tf.train.CheckpointManager(checkpoint, "./ckpt", max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    if manager.latest_checkpoint:
        log.info("restored %s", manager.latest_checkpoint)

    def replica(batch, weight):
        with tf.GradientTape() as tape:
            ce = tf.nn.sigmoid_cross_entropy_with_logits(labels=batch["y"], logits=student(batch["x"], training=True)[:, 0])
            p = tf.sigmoid(student(batch["u_student"], training=True))
            q = tf.stop_gradient(tf.sigmoid(teacher(batch["u_teacher"], training=False)))
            loss = tf.reduce_sum(ce) / LABELLED + weight * tf.reduce_sum(tf.square(p - q)) / UNLABELLED
        optimizer.apply_gradients(zip(tape.gradient(loss, student.trainable_variables), student.trainable_variables))
        return loss

    @tf.function
    def train_step(batch, weight):
        loss = strategy.run(replica, args=(batch, weight))
        return strategy.reduce("SUM", loss, axis=None)

    @tf.function
    def update_teacher():
        for t, s in zip(teacher.variables, student.variables):
            t.assign(DECAY * t + (1 - DECAY) * s)

    def split(batch):
        def value(ctx):
            r = ctx.replica_id_in_sync_group
            return {k: tf.constant(v[r * len(v) // replicas:(r + 1) * len(v) // replicas]) for k, v in batch.items()}
        return strategy.experimental_distribute_values_from_function(value)

    def accuracy(model):
        return float(np.mean((model(X_TEST).numpy()[:, 0] > 0) == Y_TEST))

    for step in range(int(step_var.numpy()), STEPS):
        loss = train_step(split(batch_of(step)), tf.constant(rampup(step), tf.float32))
        update_teacher()
        step_var.assign(step + 1)
        if (step + 1) % SAVE_EVERY == 0:
            manager.save(checkpoint_number=step + 1)
            log.info("step %4d loss %.4f student %.4f teacher %.4f", step + 1, loss, accuracy(student), accuracy(teacher))

    logits = teacher(X_TEST)[:, 0]
    nll = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=Y_TEST, logits=logits))
    print("final: teacher nll %.4f" % float(nll))


if __name__ == "__main__":
    main()
