"""Tests for training on several replicas, in the style of keras/src/backend/tensorflow/distribute_test.py.

The name of a test begins with that of the report whose error it shows.
"""

import contextlib
import functools
import json
import os
import socket
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, losses, optimizers
from keras.src import testing  # noqa: TID251
from tensorflow.python.eager import context  # noqa: TID251

ROWS = np.arange(8.0, dtype="float32").reshape(8, 1) / 8
ONES = np.ones((8, 1), "float32")


def dense(units=1, **options):
    return layers.Dense(units, kernel_initializer="ones", **options)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="The distribute test can only run with TF backend.",
)
class ReplicaTest(testing.TestCase):
    def setUp(self):
        super().setUp()
        # Need at least 2 devices for distribution related tests.
        cpu = tf.config.list_physical_devices("CPU")[0]
        context._reset_context()  # noqa: SLF001
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * 2
        )
        self.one = tf.distribute.get_strategy()
        self.two = tf.distribute.MirroredStrategy(
            ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
        )

    def compiled(self, strategy, *stack, loss="mse", optimizer=None, **options):
        """Returns a model; layers and optimizer come from functions, since each model needs its own."""
        with strategy.scope():
            model = keras.Sequential([make() for make in stack or (dense,)])
            optimizer = optimizer() if optimizer else optimizers.SGD(0.1)
            model.compile(optimizer, loss, jit_compile=False, **options)
        return model

    def trained(self, strategy, x, y, *stack, weights=None, **options):
        """Returns the weights and the losses after two epochs in batches of four."""
        model = self.compiled(strategy, *stack, **options)
        history = model.fit(
            x, y, batch_size=4, epochs=2, shuffle=False, verbose=0, sample_weight=weights
        )
        return [*model.get_weights(), history.history["loss"]]

    def assert_as_on_one_device(self, x, y, *stack, **options):
        one, two = (self.trained(each, x, y, *stack, **options) for each in (self.one, self.two))
        for got, expected in zip(two, one, strict=True):
            self.assertAllClose(got, expected, rtol=1e-4, atol=1e-4)

    def test_embedding_duplicate_ids(self):
        """A table is trained as the matrix that is multiplied by one-hot vectors; two replicas use the same row."""
        ids = np.array([[0], [0], [1], [0]])
        y = np.array([[1.0], [3.0], [2.0], [1.0]])

        def trained(strategy, layer, x, optimizer):
            model = self.compiled(strategy, layer, layers.Flatten, optimizer=lambda: optimizer(0.1))
            model.fit(x, y, batch_size=4, epochs=3, shuffle=False, verbose=0)
            return model.get_weights()[0]

        def table():
            return layers.Embedding(2, 1, embeddings_initializer="zeros")

        def matrix():
            return layers.Dense(1, use_bias=False, kernel_initializer="zeros")

        for optimizer in (optimizers.Adam, optimizers.RMSprop, optimizers.Adagrad):
            expected = trained(self.one, matrix, np.eye(2)[ids[:, 0]], optimizer)
            for strategy in (self.one, self.two):
                got = trained(strategy, table, ids, optimizer)
                self.assertAllClose(got, expected, rtol=1e-4, atol=1e-4)

    def test_clipping_of_duplicate_ids(self):
        for clipping in ({"clipnorm": 0.1}, {"global_clipnorm": 0.1}):
            model = self.compiled(
                self.one,
                lambda: layers.Embedding(4, 1, embeddings_initializer="zeros"),
                layers.Flatten,
                optimizer=functools.partial(optimizers.SGD, 1.0, **clipping),
            )
            model.fit(np.zeros((4, 1)), 9 * np.ones((4, 1)), batch_size=4, verbose=0)
            self.assertAllClose(np.linalg.norm(model.get_weights()[0]), 0.1, atol=1e-4)

    def test_generator_loses_batches(self):
        def batches():
            for number in range(10):
                yield np.full((2, 1), float(number)), np.zeros((2, 1))

        results = []
        for strategy in (self.one, self.two):
            model = self.compiled(
                strategy, keras.layers.Flatten, dense, optimizer=lambda: optimizers.SGD(0.0)
            )
            loss = model.fit(batches(), verbose=0).history["loss"]
            results.append([*loss, model.evaluate(batches(), verbose=0)])
        self.assertAllClose(results[1], results[0])

    def test_generator_loses_batches_of_uneven_parts(self):
        for rows in (1, 3):
            self.assert_built_and_trained(ROWS[:rows], ONES[:rows], dense)

    def test_generator_loses_batches_of_strings(self):
        words = np.array([["a b"], ["b c"]] * 2, dtype=object)
        data = tf.data.Dataset.from_tensor_slices((words.astype(str), ONES[:4])).batch(4)
        self.assert_built_and_trained(
            data,
            None,
            lambda: layers.TextVectorization(output_sequence_length=2, vocabulary=["a", "b"]),
            lambda: layers.Embedding(5, 2),
            layers.Flatten,
            dense,
        )

    def test_generator_loses_batches_of_sparse_tensors(self):
        sparse = tf.sparse.from_dense(np.eye(4, dtype="float32"))
        data = tf.data.Dataset.from_tensor_slices((sparse, ONES[:4])).batch(4)
        self.assert_built_and_trained(data, None, lambda: keras.Input((4,), sparse=True), dense)

    def test_generator_loses_batches_of_whole_numbers(self):
        class Rows(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = dense()

            def call(self, x):
                return self.dense(tf.gather(tf.ones((8, 2)), x))

        with self.two.scope():
            model = Rows()
            model.compile("sgd", "mse")
        model.fit(np.arange(4), ONES[:4], batch_size=4, verbose=0)
        self.assertEqual(int(model.optimizer.iterations.numpy()), 1)

    def assert_built_and_trained(self, x, y, *stack):
        model = self.compiled(self.two, *stack)
        model.fit(x, y, batch_size=None if y is None else 4, verbose=0)
        self.assertEqual(int(model.optimizer.iterations.numpy()), 1)

    def test_scalar_loss_in_fit(self):
        self.assert_as_on_one_device(ROWS, ONES, loss=lambda y, p: tf.reduce_mean(abs(y - p)))

    def test_scalar_loss_in_fit_of_an_output_of_rank_one(self):
        self.assert_as_on_one_device(ROWS, ONES[:, 0], dense, lambda: layers.Reshape(()))

    def test_scalar_loss_in_fit_that_is_a_sum(self):
        """Sums of parts are added up, and not divided."""

        class Sum(losses.Loss):
            def call(self, y, p):
                return tf.reduce_sum(abs(y - p))

        self.assert_as_on_one_device(ROWS, ONES, loss=Sum(reduction="sum"))

    def test_masked_loss_mean_of_means(self):
        x = np.ones((4, 4, 1), "float32")
        x[2:, 1:] = 0
        y = np.arange(16.0).reshape(4, 4, 1)
        self.assert_as_on_one_device(x, y, layers.Masking, dense)

    def test_masked_loss_mean_of_means_with_ignored_classes(self):
        y = np.array([0, 1, 2, 1, 0, -1, -1, -1])
        self.assert_as_on_one_device(
            ROWS,
            y,
            lambda: layers.Dense(3, kernel_initializer="ones"),
            loss=losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1),
        )

    def test_masked_loss_mean_of_means_with_weights(self):
        self.assert_as_on_one_device(
            ROWS,
            ONES,
            weights=np.linspace(0.1, 3, 8),
            loss=losses.MeanSquaredError(reduction="mean_with_sample_weight"),
        )

    def test_fit_counts_empty_parts(self):
        for rows in (5, 7):
            self.assert_as_on_one_device(ROWS[:rows], 3 * ONES[:rows] - ROWS[:rows])

    def test_fit_counts_empty_parts_of_a_sum(self):
        """The reported loss is the sum over the batch, and not a mean of the replicas' sums."""
        for rows in (5, 7):
            self.assert_as_on_one_device(
                ROWS[:rows], ONES[:rows], loss=losses.MeanSquaredError(reduction="sum")
            )

    def test_batch_normalization_empty_part(self):
        model = self.compiled(
            self.two, lambda: layers.BatchNormalization(momentum=0.5, epsilon=1.0), dense
        )
        model.fit(ROWS[:5], ONES[:5], batch_size=4, shuffle=False, verbose=0)
        for weight in model.get_weights():
            self.assertTrue(np.all(np.isfinite(weight)))

    def test_batch_normalization_empty_part_keeps_the_statistics(self):
        layer = layers.BatchNormalization(momentum=0.5)
        layer.build((None, 1))
        layer.moving_mean.assign([3.0])
        layer.moving_variance.assign([5.0])
        layer(tf.zeros((0, 1)), training=True)
        self.assertAllClose(layer.moving_mean, [3.0])
        self.assertAllClose(layer.moving_variance, [5.0])

    def test_clipping_before_all_reduce(self):
        for clipping in ({"clipnorm": 0.01}, {"global_clipnorm": 0.01}, {"clipvalue": 0.01}):
            self.assert_as_on_one_device(
                ROWS,
                4 * ONES - 5 * ROWS,
                optimizer=functools.partial(optimizers.SGD, 1.0, **clipping),
            )

    def test_dropout_same_mask(self):
        with self.two.scope():
            layer = layers.Dropout(0.5, seed=1)
        alone = layers.Dropout(0.5, seed=1)(tf.ones((64,)), training=True)

        @tf.function
        def masks():
            return self.two.run(lambda: layer(tf.ones((64,)), training=True))

        first, second = self.two.experimental_local_results(masks())
        self.assertAllClose(first, alone)
        self.assertFalse(np.array_equal(first, second))

    def test_keras_distribution_tensorflow(self):
        distribution = keras.distribution.DataParallel(devices=["cpu:0", "cpu:1"])
        with pytest.warns(UserWarning, match="distributes nothing"):
            keras.distribution.set_distribution(distribution)
        keras.distribution.set_distribution(None)

    def test_loss_scale_of_first_replica(self):
        for rows in ([[1.0], [np.inf]], [[np.inf], [1.0]], [[1.0], [1.0]]):
            model = self.compiled(
                self.two,
                optimizer=lambda: optimizers.LossScaleOptimizer(
                    optimizers.SGD(0.1), initial_scale=4.0
                ),
            )
            model.fit(np.array(rows), 0 * ONES[:2], batch_size=2, shuffle=False, verbose=0)
            overflows = not np.all(np.isfinite(rows))
            self.assertAllClose(model.optimizer.dynamic_scale, 2.0 if overflows else 4.0)
            self.assertEqual(model.get_weights()[0][0, 0] == 1.0, overflows)

    def test_moving_statistics_of_first_replica(self):
        model = self.compiled(self.two, lambda: layers.BatchNormalization(momentum=0.0))
        x = np.array([[0.0], [2.0], [10.0], [12.0]])
        model.fit(x, x, batch_size=4, shuffle=False, verbose=0)
        self.assertAllClose(model.layers[0].moving_mean, [6.0])

    def test_moving_statistics_of_first_replica_in_renorm(self):
        model = self.compiled(
            self.two, lambda: layers.BatchNormalization(momentum=0.0, renorm=True)
        )
        x = np.array([[0.0], [2.0], [10.0], [12.0]])
        model.fit(x, x, batch_size=4, shuffle=False, verbose=0)
        self.assertAllClose(model.layers[0].moving_mean, [6.0])

    def test_on_batch_methods_not_distributed(self):
        one, two = self.compiled(self.one), self.compiled(self.two)
        for rows in (8, 7, 1):
            self.assertAllClose(
                two.predict_on_batch(ROWS[:rows]), one.predict_on_batch(ROWS[:rows])
            )
        self.assertAllClose(two.test_on_batch(ROWS, ONES), one.test_on_batch(ROWS, ONES))
        self.assertAllClose(two.train_on_batch(ROWS, ONES), one.train_on_batch(ROWS, ONES))
        self.assertAllClose(two.get_weights()[0], one.get_weights()[0])

    def test_sample_weight_over_time(self):
        y, p = np.zeros((2, 2, 1)), np.array([[[1.0], [1.0]], [[3.0], [3.0]]])
        for weights, expected in (([1.0, 0.0], 0.5), ([0.0, 1.0], 4.5)):
            weighted = losses.MeanSquaredError()(y, p, sample_weight=np.array(weights))
            self.assertAllClose(weighted, expected)

    def test_sample_weight_over_time_with_a_mask(self):
        y, p = tf.zeros((2, 2, 1)), tf.constant([[[1.0], [1.0]], [[3.0], [3.0]]])
        p._keras_mask = tf.constant([[True, False], [True, True]])  # noqa: SLF001
        weighted = losses.MeanSquaredError()(y, p, sample_weight=tf.constant([1.0, 0.0]))
        self.assertAllClose(weighted, 1 / 3)

    def test_schedule_free_adamw_alias(self):
        variable = keras.Variable(1.0)
        optimizer = optimizers.ScheduleFreeAdamW(0.1, weight_decay=None)
        for _ in range(2):
            optimizer.apply([tf.constant(2.0)], [variable])
        # z: 1 - 0.1 - 0.1; x: 0.9, then the mean of 0.9 and 0.8; y: 0.1 * z + 0.9 * x
        self.assertAllClose(variable, 0.1 * 0.8 + 0.9 * 0.85, atol=1e-5)

    def test_schedule_free_adamw_forgets_weights(self):
        """A small step of `fit` leaves the weights nearly what they are, on one device and on two."""
        for strategy in (self.one, self.two):
            optimizer = functools.partial(optimizers.ScheduleFreeAdamW, 1e-3)
            model = self.compiled(strategy, dense, optimizer=optimizer)
            model.fit(ROWS, ROWS, epochs=1, verbose=0)
            self.assertAllClose(model.get_weights()[0], [[1.0]], atol=0.01)

    def test_steps_per_execution_overruns(self):
        batches = tf.data.Dataset.from_tensors((ONES, ONES)).repeat()
        model = self.compiled(self.one, steps_per_execution=4)
        model.fit(batches, steps_per_epoch=10, epochs=3, verbose=0)
        self.assertEqual(int(model.optimizer.iterations.numpy()), 30)
        self.assertLen(model.predict(batches, steps=10, verbose=0), 80)

    def test_steps_per_execution_overruns_on_replicas(self):
        data = tf.data.Dataset.from_tensors((ONES, ONES)).repeat(8)
        model = self.compiled(self.two, steps_per_execution=3)
        model.fit(data, steps_per_epoch=8, verbose=0)
        self.assertEqual(int(model.optimizer.iterations.numpy()), 8)

    def test_steps_per_execution_overruns_a_generator(self):
        def batches():
            for _ in range(20):
                yield ONES, ONES

        model = self.compiled(self.one, steps_per_execution=3)
        model.fit(batches(), steps_per_epoch=8, epochs=2, verbose=0)
        self.assertEqual(int(model.optimizer.iterations.numpy()), 16)

    def test_loss_in_scope(self):
        loss = losses.MeanSquaredError()
        with self.two.scope():
            self.assertAllClose(loss(tf.zeros((4, 1)), tf.ones((4, 1))), 1.0)

    def test_logs_of_each_batch(self):
        labels = np.array([[1.0], [1.0], [0.0], [0.0]] * 2)
        scores = np.array([[0.9], [0.8], [0.7], [0.1]] * 2)

        def of_batches(strategy):
            seen = []
            model = self.compiled(
                strategy,
                layers.Flatten,
                lambda: dense(use_bias=False),
                optimizer=lambda: optimizers.SGD(0.0),
                metrics=[keras.metrics.Precision(), keras.metrics.AUC()],
            )
            keep = keras.callbacks.LambdaCallback(
                on_train_batch_end=lambda _, logs: seen.append([*map(float, logs.values())])
            )
            model.fit(scores, labels, batch_size=4, shuffle=False, verbose=0, callbacks=[keep])
            return seen

        self.assertAllClose(of_batches(self.two), of_batches(self.one))

    def test_initial_epoch_stays(self):
        folder = os.path.join(self.get_temp_dir(), "backup")  # which is deleted in the end
        backup = keras.callbacks.BackupAndRestore(folder)
        self.interrupted(backup, epoch=4)
        model = self.compiled(self.one, lambda: keras.Input((1,)), dense)
        self.assertEqual(
            model.fit(ROWS, ONES, epochs=6, verbose=0, callbacks=[backup]).epoch, [4, 5]
        )
        self.assertEqual(model.fit(ROWS, ONES, epochs=3, verbose=0).epoch, [0, 1, 2])

    def test_initial_epoch_stays_in_a_second_interruption(self):
        folder = self.get_temp_dir()
        for batch in (5, 1):
            backup = keras.callbacks.BackupAndRestore(folder, save_freq=1)
            self.interrupted(backup, batch=batch)
        with open(os.path.join(folder, "training_metadata.json")) as file:
            self.assertEqual(json.load(file)["epoch"], 2)

    def test_fit_has_one_order(self):
        """Each epoch has an order of its own, and a seed gives the same orders again."""

        def orders(strategy, shuffle):
            rows = np.arange(16.0, dtype="float32").reshape(16, 1)
            taken = []

            class Kept(layers.Layer):
                def call(self, rows):
                    tf.py_function(lambda rows: taken.extend(rows.numpy()), [rows], [])
                    return rows

            keras.utils.set_random_seed(1)
            model = self.compiled(strategy, lambda: keras.Input((1,)), Kept, dense)
            model.fit(rows, rows, batch_size=4, epochs=3, shuffle=shuffle, verbose=0)
            return np.reshape(taken, (3, 16)).tolist()

        for shuffle in (True, "batch"):
            first, second, third = orders(self.one, shuffle)
            self.assertEqual(orders(self.one, shuffle), [first, second, third])
            self.assertTrue(first != second != third)
            self.assertEqual(sorted(first), sorted(second))
        of_two = orders(self.two, True)
        self.assertEqual(len({*map(tuple, of_two)}), 3)

    def test_h5_optimizer_without_variables(self):
        """A model from a file goes on as the one that was saved, with the same state of the optimizer."""
        for strategy in (self.one, self.two):
            model = self.compiled(
                strategy, dense, loss=losses.MeanSquaredError(), optimizer=optimizers.Adam
            )
            model.fit(ROWS, ONES, epochs=2, verbose=0)
            path = os.path.join(self.get_temp_dir(), "model.h5")
            model.save(path)
            with strategy.scope():
                loaded = keras.models.load_model(path)
            self.assertEqual(loaded.optimizer.iterations.numpy(), 2)
            for each in (model, loaded):
                each.fit(ROWS, ONES, verbose=0)
            for got, expected in zip(loaded.get_weights(), model.get_weights(), strict=True):
                self.assertAllClose(got, expected)

    def test_trainable_set_again(self):
        """The layers inside follow, also those that were set one by one."""
        for value, count in ((True, 6), (False, 2)):
            for strategy in (self.one, self.two):
                with strategy.scope():
                    base = keras.Sequential([keras.Input((1,)), dense(), dense()])
                base.trainable = value
                base.layers[0].trainable = not value
                base.trainable = value
                self.assertEqual(self.count_of_trained(strategy, base), count)

    def test_trainable_set_again_of_the_model_outside(self):
        base = keras.Sequential([keras.Input((1,)), dense(), dense()])
        base.layers[0].trainable = False
        model = keras.Sequential([keras.Input((1,)), base, dense()])
        model.trainable = True
        self.assertLen(model.trainable_weights, 6)

    def test_trainable_set_again_by_a_file(self):
        """A model from a file has those layers frozen that were frozen one by one."""
        model = keras.Sequential([keras.Input((1,)), dense(), dense()])
        model.layers[0].trainable = False
        path = os.path.join(self.get_temp_dir(), "model.keras")
        model.save(path)
        loaded = keras.models.load_model(path)
        self.assertEqual([each.trainable for each in loaded.layers], [False, True])

    def test_trainable_set_again_without_a_setter(self):
        """A property that can only be read may be set to what it is, as before."""
        layer = dense()
        layer.dtype = layer.dtype
        self.assertEqual(layer.dtype, "float32")

    def count_of_trained(self, strategy, base):
        """Returns how many weights `fit` changes in a model of these layers and one more."""
        model = self.compiled(strategy, lambda: keras.Input((1,)), lambda: base, dense)
        before = model.get_weights()
        model.fit(ROWS, -ONES, batch_size=4, verbose=0)
        return sum((old != new).any() for old, new in zip(before, model.get_weights(), strict=True))

    def interrupted(self, backup, epoch=None, batch=None):
        """Trains in epochs of two batches, until an epoch begins or a batch of this call ends."""
        batches = []

        def on_epoch_begin(number, logs):
            if number == epoch:
                raise KeyboardInterrupt

        def on_train_batch_end(number, logs):
            batches.append(number)
            if len(batches) == batch:
                raise KeyboardInterrupt

        stop = keras.callbacks.LambdaCallback(
            on_epoch_begin=on_epoch_begin, on_train_batch_end=on_train_batch_end
        )
        model = self.compiled(self.one, lambda: keras.Input((1,)), dense)
        with contextlib.suppress(KeyboardInterrupt):
            model.fit(ROWS, ONES, batch_size=4, epochs=6, verbose=0, callbacks=[backup, stop])

    def test_ema_overwrite_frequency(self):
        self.assert_as_on_one_device(
            ROWS,
            ONES,
            optimizer=lambda: optimizers.SGD(
                0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3
            ),
        )

    def test_float8_history_of_first_replica(self):
        x = np.array([[1.0], [2.0], [3.0], [9.0]])

        def largest(strategy):
            with strategy.scope():
                model = keras.Sequential([keras.Input((1,)), layers.Dense(1)])
                model.quantize("float8")
                model.compile("sgd", "mse", jit_compile=False)
            model.fit(x, x, batch_size=4, shuffle=False, verbose=0)
            return model.layers[0].inputs_amax_history

        self.assertAllClose(tf.reduce_max(largest(self.two)), 9.0)
        self.assertAllClose(largest(self.two), largest(self.one))

    def test_assign_add_of_a_sum(self):
        for synchronization in ("auto", "on_read"):
            with self.two.scope():
                counter = keras.Variable(
                    0.0, trainable=False, aggregation="sum", synchronization=synchronization
                )
            for change, total in (
                (counter.assign_add, 2.0),
                (counter.assign_add, 4.0),
                (counter.assign_sub, 2.0),
            ):
                self.two.run(change, args=(1.0,))
                self.assertAllClose(counter, total)

    def test_assign_add_of_a_sum_in_metrics_of_a_central_storage(self):
        central = tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
        one, two = self.compiled(self.one), self.compiled(central)
        options = {"batch_size": 4, "shuffle": False, "verbose": 0}
        for model in (one, two):
            model.optimizer.learning_rate = 0.0
        self.assertAllClose(
            two.fit(ROWS, ONES, **options).history["loss"],
            one.fit(ROWS, ONES, **options).history["loss"],
        )

    def test_fit_of_several_workers(self):
        self.assertAllClose(results_of_two_workers(), results(self.one), rtol=1e-4)


def results(strategy):
    """Returns what fit, evaluate and train_on_batch report for a small model."""
    with strategy.scope():
        model = keras.Sequential([keras.Input((1,)), dense()])
        model.compile(optimizers.SGD(0.1), "mse", metrics=["mae"], jit_compile=False)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    data = tf.data.Dataset.from_tensor_slices((ROWS, ONES)).batch(4).with_options(options)
    history = model.fit(data, epochs=2, verbose=0).history
    return [*history["loss"], *history["mae"], *model.evaluate(data, verbose=0)]


def results_of_two_workers():
    """Returns the results of the first of two processes of this file."""
    workers = [f"localhost:{port}" for port in free_ports()]
    processes = [
        subprocess.Popen(
            [sys.executable, __file__],
            env=os.environ
            | {
                "TF_CONFIG": json.dumps(
                    {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
                )
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    try:
        outputs = [each.communicate(timeout=120)[0] for each in processes]
    finally:
        for process in processes:
            process.kill()
    return json.loads(outputs[0].splitlines()[-1])


def free_ports():
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]


if __name__ == "__main__":
    try:
        print(json.dumps(results(tf.distribute.MultiWorkerMirroredStrategy())), flush=True)
    finally:
        os._exit(0)  # a worker does not wait for the other one
