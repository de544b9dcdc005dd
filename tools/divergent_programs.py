"""Programs that train another model on 2 devices than on 1, through a fault of the program or of the framework, and correct ones.

Each is one of two correct programs with some lines replaced.
"""

from dataclasses import dataclass

DATA = """\
import numpy as np
import tensorflow as tf

EXAMPLES, BATCH = 64, 16
tf.keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(EXAMPLES, 3)).astype("float32")
y = (x @ np.array([[3.0], [-2.0], [5.0]], "float32")) + 4
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    layers = [tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential([tf.keras.Input((3,)), *layers])
    optimizer = tf.keras.optimizers.SGD(0.02)
"""
FIT = f"""{DATA}\
    model.compile(optimizer, loss="mse")
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
model.fit(data, epochs=2, verbose=0)
"""
LOOP = f"""{DATA}\
    optimizer.build(model.trainable_variables)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)


def loss_of(labels, outputs):
    errors = tf.square(labels - outputs)[:, 0]
    return tf.nn.compute_average_loss(errors, global_batch_size=BATCH)


def step(inputs, labels):
    with tf.GradientTape() as tape:
        outputs = model(inputs, training=True)
        loss = loss_of(labels, outputs)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def train(inputs, labels):
    return strategy.reduce("SUM", strategy.run(step, args=(inputs, labels)), axis=None)


data = strategy.experimental_distribute_dataset(data)
for epoch in range(2):
    for inputs, labels in data:
        loss = train(inputs, labels)
"""
PROGRAM, FRAMEWORK, NOBODY = "program", "framework", "nobody"
# Parts of the names of programs that are right in Keras 2, which clips the sum and divides any loss; and what it does not have.
RIGHT_IN_KERAS_2 = "clip", "one number", "overflow", "positions"
NOT_IN_KERAS_2 = "Dice", "Tversky"


@dataclass(frozen=True)
class Program:
    name: str
    fault: str  # whose it is
    base: str
    edits: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """Returns the program; raises ValueError for an edit that changes nothing."""
        text = self.base
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} is not once in the program")
            text = text.replace(old, new)
        return text

    def fault_in(self, keras: int) -> str:
        """Returns whose fault it is in a version of Keras; nothing if the program needs what this version does not have."""
        if keras == 2 and self.name in NOT_IN_KERAS_2:
            return ""
        is_repaired = self.fault == FRAMEWORK and any(
            part in self.name for part in RIGHT_IN_KERAS_2
        )
        return NOBODY if keras == 2 and is_repaired else self.fault


def change(old: str, new: str) -> tuple[str, str]:
    return old, new


def optimizer(made: str) -> tuple[str, str]:
    return "optimizer = tf.keras.optimizers.SGD(0.02)", f"optimizer = tf.keras.optimizers.{made}"


def layers(made: str) -> tuple[str, str]:
    return 'layers = [tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)]', (
        f"layers = [{made.replace('L.', 'tf.keras.layers.')}]"
    )


def loss(body: str) -> tuple[str, str]:
    return "return tf.nn.compute_average_loss(errors, global_batch_size=BATCH)", body


def compiled(with_loss: str) -> tuple[str, str]:
    return 'model.compile(optimizer, loss="mse")', f"model.compile(optimizer, loss={with_loss})"


def before_apply(line: str) -> tuple[str, str]:
    applied = "    optimizer.apply_gradients(zip"
    return applied, f"    {line}\n{applied}"


UNEVEN = change("EXAMPLES, BATCH = 64, 16", "EXAMPLES, BATCH = 65, 16")
VERY_UNEVEN = change("EXAMPLES, BATCH = 64, 16", "EXAMPLES, BATCH = 67, 16")
ARRAYS = change("model.fit(data, ", "model.fit(x, y, batch_size=BATCH, shuffle=False, ")
POSITIVE = change(
    "y = (x @", 'y = (np.arange(EXAMPLES)[:, None] % 7 < 3).astype("float32")\n_ = (x @'
)
SIGMOID = layers('L.Dense(8, activation="relu"), L.Dense(1, activation="sigmoid")')
NAMED = "\n\ndef my_loss(labels, outputs):\n    return tf.reduce_mean(tf.square(labels - outputs))\n\n\nstrategy ="
IN_FIT = "\n\ndef my_loss(labels, outputs):\n    errors = labels - outputs\n    return {}\n\n\nstrategy ="
OWN_MODEL = """

class Own(tf.keras.Model):
    def train_step(self, data):
        inputs, labels = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(labels - self(inputs, training=True)))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


strategy ="""
STATISTICS = """

class Centre(tf.keras.layers.Layer):
    def call(self, inputs):
        return inputs - tf.reduce_mean(inputs, axis=0, keepdims=True)


strategy ="""
POSITIONS = """

class Positions(tf.keras.layers.Layer):
    def build(self, shape):
        self.table = tf.keras.layers.Embedding(3, 1)
        self.table.build(None)

    def call(self, inputs):
        return inputs + self.table(tf.range(3))[:, 0]


strategy ="""
MEANS = """

class Means(tf.distribute.ReductionToOneDevice):
    def reduce_implementation(self, reduce_op, value, destinations, options):
        mean = tf.distribute.ReduceOp.MEAN
        return super().reduce_implementation(mean, value, destinations, options)

    def batch_reduce_implementation(self, reduce_op, pairs, options):
        return [self.reduce_implementation(reduce_op, *pair, options) for pair in pairs]


strategy ="""
FROM_FUNCTION = """\
def whole_batches(context):
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)


data = strategy.distribute_datasets_from_function(whole_batches)
"""
DISTRIBUTED = "data = strategy.experimental_distribute_dataset(data)\n"
OVERFLOW_RECORD = change("y = (x @", 'x[12] = np.inf\ny = (np.ones((EXAMPLES, 3), "float32") @')
SCALED = change(
    "optimizer = tf.keras.optimizers.SGD(0.02)",
    "inner = tf.keras.optimizers.SGD(0.01)\n"
    "    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=4.0)",
)
HALF = change(
    "strategy = tf", 'tf.keras.mixed_precision.set_global_policy("mixed_float16")\nstrategy = tf'
)
BRAIN_HALF = change(
    "strategy = tf", 'tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")\nstrategy = tf'
)
WORDS = change(
    "y = (x @",
    "x = rng.integers(1, 9, size=(EXAMPLES, 6))\n"
    "x[np.arange(6)[None] >= rng.integers(1, 7, size=EXAMPLES)[:, None]] = 0\n"
    'y = np.cumsum(x, 1)[..., None].astype("float32") / 10\n_ = (np.ones((EXAMPLES, 3)) @',
)
EMBEDDING = (
    WORDS,
    change("tf.keras.Input((3,))", 'tf.keras.Input((6,), dtype="int32")'),
    layers("L.Embedding(9, 4, mask_zero=True), L.Dense(1)"),
    optimizer("SGD(0.1)"),
)


def defined(text: str) -> tuple[str, str]:
    return "\nstrategy =", text


PROGRAMS = (
    # Faults of the program
    Program("a mean of each part", PROGRAM, LOOP, (loss("return tf.reduce_mean(errors)"),)),
    Program(
        "divided twice",
        PROGRAM,
        LOOP,
        (loss("return tf.reduce_sum(errors) / BATCH / strategy.num_replicas_in_sync"),),
    ),
    Program(
        "clipped by global norm in replicas",
        PROGRAM,
        LOOP,
        (before_apply("gradients, _ = tf.clip_by_global_norm(gradients, 0.5)"),),
    ),
    Program(
        "clipped by norm in replicas",
        PROGRAM,
        LOOP,
        (before_apply("gradients = [tf.clip_by_norm(each, 0.5) for each in gradients]"),),
    ),
    Program(
        "clipped by value in replicas",
        PROGRAM,
        LOOP,
        (before_apply("gradients = [tf.clip_by_value(each, -0.1, 0.1) for each in gradients]"),),
    ),
    Program(
        "a penalty that each replica adds",
        PROGRAM,
        LOOP,
        (
            loss(
                "penalty = 0.1 * tf.add_n([tf.nn.l2_loss(each) for each in model.trainable_variables])\n"
                "    return tf.reduce_sum(errors) / BATCH + penalty"
            ),
        ),
    ),
    Program(
        "centred by the mean of a part",
        PROGRAM,
        LOOP,
        (
            change(
                "errors = tf.square(labels - outputs)[:, 0]",
                "errors = tf.square(labels - outputs + tf.reduce_mean(outputs))[:, 0]",
            ),
        ),
    ),
    Program(
        "added up twice",
        PROGRAM,
        LOOP,
        (
            before_apply(
                'gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)'
            ),
        ),
    ),
    Program(
        "own normalization of a part",
        PROGRAM,
        LOOP,
        (
            change(
                "outputs = model(inputs, training=True)",
                "mean, variance = tf.nn.moments(inputs, [0])\n"
                "        outputs = model((inputs - mean) / tf.sqrt(variance + 1e-3), training=True)",
            ),
        ),
    ),
    Program(
        "a mean over the unmasked of a part",
        PROGRAM,
        LOOP,
        (
            loss(
                "mask = tf.cast(labels[:, 0] > 4.0, tf.float32)\n"
                "    scale = tf.distribute.get_replica_context().num_replicas_in_sync\n"
                "    return tf.reduce_sum(errors * mask) / (tf.reduce_sum(mask) + 1e-6) / scale"
            ),
        ),
    ),
    Program("a dataset that is not distributed", PROGRAM, LOOP, ((DISTRIBUTED, ""),)),
    Program("a whole batch for each replica", PROGRAM, LOOP, ((DISTRIBUTED, FROM_FUNCTION),)),
    Program(
        "a variable outside the scope",
        PROGRAM,
        LOOP,
        (
            defined('\nseen = tf.Variable(0.0, name="seen")\nstrategy ='),
            loss("seen.assign_add(1.0)\n    return tf.reduce_sum(errors) / BATCH / (1.0 + seen)"),
        ),
    ),
    Program(
        "weighed by the number of the replica",
        PROGRAM,
        LOOP,
        (
            loss(
                "context = tf.distribute.get_replica_context()\n"
                "    weight = tf.cast(context.replica_id_in_sync_group + 1, tf.float32)\n"
                "    return weight * tf.reduce_sum(errors) / BATCH"
            ),
        ),
    ),
    Program(
        "the largest error of a part",
        PROGRAM,
        LOOP,
        (loss("return tf.reduce_max(errors) / 8"),),
    ),
    Program(
        "gradients of one length",
        PROGRAM,
        LOOP,
        (
            before_apply(
                "gradients = [each / (tf.norm(each) + 1e-6) for each in gradients]",
            ),
        ),
    ),
    Program(
        "a last batch that is smaller",
        PROGRAM,
        LOOP,
        (
            VERY_UNEVEN,
            loss(
                "context = tf.distribute.get_replica_context()\n"
                "    return tf.reduce_mean(errors) / context.num_replicas_in_sync"
            ),
        ),
    ),
    Program(
        "own way to add up",
        PROGRAM,
        LOOP,
        (
            change(
                "\nstrategy = tf.distribute.MirroredStrategy()",
                f"{MEANS} tf.distribute.MirroredStrategy(cross_device_ops=Means())",
            ),
        ),
    ),
    Program("a loss that is one number", FRAMEWORK, FIT, (defined(NAMED), compiled("my_loss"))),
    Program(
        "divided by a sum over a part, in fit",
        PROGRAM,
        FIT,
        (
            defined(IN_FIT.format("tf.square(errors) / tf.reduce_sum(tf.abs(labels))")),
            compiled("my_loss"),
        ),
    ),
    Program(
        "centred by the mean of a part, in fit",
        PROGRAM,
        FIT,
        (
            defined(IN_FIT.format("tf.square(errors - tf.reduce_mean(errors))")),
            compiled("my_loss"),
        ),
    ),
    Program(
        "own loss of each example, beside dropout",
        NOBODY,
        FIT,
        (
            defined(IN_FIT.format("tf.abs(errors) / tf.reduce_sum(tf.abs(labels) + 1, 1, True)")),
            compiled("my_loss"),
            layers('L.Dense(8, activation="relu"), L.Dropout(0.3), L.Dense(1)'),
        ),
    ),
    Program(
        "own train_step",
        PROGRAM,
        FIT,
        (
            defined(OWN_MODEL),
            change(
                "model = tf.keras.Sequential([tf.keras.Input((3,)), *layers])",
                "first = tf.keras.Input((3,))\n    model = Own(first, layers[1](layers[0](first)))",
            ),
        ),
    ),
    Program(
        "own layer with a mean over the batch",
        PROGRAM,
        FIT,
        (
            defined(STATISTICS),
            change("*layers])", "layers[0], Centre(), layers[1]])"),
        ),
    ),
    # Faults of the framework
    Program(
        "positions in an embedding, with Adam",
        FRAMEWORK,
        LOOP,
        (defined(POSITIONS), optimizer("Adam(0.02)"), layers("Positions(), L.Dense(1)")),
    ),
    Program("clipnorm", FRAMEWORK, FIT, (optimizer("SGD(0.02, clipnorm=0.5)"),)),
    Program("global_clipnorm", FRAMEWORK, FIT, (optimizer("SGD(0.02, global_clipnorm=0.5)"),)),
    Program("clipvalue", FRAMEWORK, FIT, (optimizer("SGD(0.02, clipvalue=0.1)"),)),
    Program(
        "clipvalue with momentum",
        FRAMEWORK,
        FIT,
        (optimizer("SGD(0.02, momentum=0.9, clipvalue=0.1)"),),
    ),
    Program("clipnorm in Adam", FRAMEWORK, FIT, (optimizer("Adam(0.02, clipnorm=0.05)"),)),
    Program("clipnorm in AdamW", FRAMEWORK, FIT, (optimizer("AdamW(0.02, clipnorm=0.05)"),)),
    Program(
        "global_clipnorm in RMSprop",
        FRAMEWORK,
        FIT,
        (optimizer("RMSprop(0.02, global_clipnorm=0.5)"),),
    ),
    Program(
        "global_clipnorm in a loop", FRAMEWORK, LOOP, (optimizer("SGD(0.02, global_clipnorm=0.5)"),)
    ),
    Program("clipnorm in a loop", FRAMEWORK, LOOP, (optimizer("SGD(0.02, clipnorm=0.5)"),)),
    Program(
        "clipnorm beside dropout",
        FRAMEWORK,
        FIT,
        (
            optimizer("SGD(0.02, clipnorm=0.5)"),
            layers('L.Dense(8, activation="relu"), L.Dropout(0.3), L.Dense(1)'),
        ),
    ),
    Program(
        "clipvalue beside BatchNormalization",
        FRAMEWORK,
        FIT,
        (
            optimizer("SGD(0.02, clipvalue=0.1)"),
            layers(
                'L.Dense(8, activation="relu"), L.BatchNormalization(synchronized=True), L.Dense(1)'
            ),
        ),
    ),
    Program("clipnorm, and arrays", FRAMEWORK, FIT, (optimizer("SGD(0.02, clipnorm=0.5)"), ARRAYS)),
    Program("an overflow of one replica", FRAMEWORK, FIT, (SCALED, OVERFLOW_RECORD)),
    Program(
        "an overflow of one replica in a loop",
        FRAMEWORK,
        LOOP,
        (
            SCALED,
            OVERFLOW_RECORD,
            change(
                "        loss = loss_of(labels, outputs)\n",
                "        loss = optimizer.scale_loss(loss_of(labels, outputs))\n",
            ),
        ),
    ),
    Program(
        "an overflow in half precision",
        FRAMEWORK,
        FIT,
        (
            HALF,
            change("y = (x @", 'x[12:16] = 6e4\ny = (np.ones((EXAMPLES, 3), "float32") @'),
            layers('L.Dense(8), L.Dense(1, dtype="float32")'),
        ),
    ),
    Program("Dice", FRAMEWORK, FIT, (POSITIVE, SIGMOID, compiled("tf.keras.losses.Dice()"))),
    Program("Tversky", FRAMEWORK, FIT, (POSITIVE, SIGMOID, compiled("tf.keras.losses.Tversky()"))),
    Program("a masked loss", FRAMEWORK, FIT, EMBEDDING),
    Program(
        "BatchNormalization with an empty part",
        FRAMEWORK,
        FIT,
        (UNEVEN, layers("L.BatchNormalization(synchronized=True), L.Dense(1)")),
    ),
    Program("an uneven last batch", FRAMEWORK, FIT, (UNEVEN,)),
    Program("an uneven last batch of arrays", FRAMEWORK, FIT, (UNEVEN, ARRAYS)),
    # Correct programs
    Program("fit", NOBODY, FIT, ()),
    Program("a loop", NOBODY, LOOP, ()),
    Program(
        "dropout",
        NOBODY,
        FIT,
        (layers('L.Dense(8, activation="relu"), L.Dropout(0.5), L.Dense(1)'),),
    ),
    Program(
        "noise",
        NOBODY,
        FIT,
        (layers('L.GaussianNoise(0.5), L.Dense(8, activation="relu"), L.Dense(1)'),),
    ),
    Program(
        "BatchNormalization",
        NOBODY,
        FIT,
        (
            layers(
                'L.Dense(8, activation="relu"), L.BatchNormalization(synchronized=True), L.Dense(1)'
            ),
        ),
    ),
    Program(
        "BatchNormalization and dropout in a loop",
        NOBODY,
        LOOP,
        (
            layers(
                'L.Dense(8, activation="relu"), L.BatchNormalization(synchronized=True), L.Dropout(0.2), L.Dense(1)'
            ),
        ),
    ),
    Program(
        "a bias before BatchNormalization",
        NOBODY,
        FIT,
        (
            optimizer("Adam(0.02)"),
            layers("L.Dense(8), L.BatchNormalization(synchronized=True), L.Dense(1)"),
        ),
    ),
    Program("bfloat16", NOBODY, FIT, (BRAIN_HALF,)),
    Program(
        "noise in the step",
        NOBODY,
        LOOP,
        (
            change(
                "outputs = model(inputs, training=True)",
                "noise = tf.random.normal(tf.shape(inputs))\n        outputs = model(inputs + noise, training=True)",
            ),
        ),
    ),
    Program(
        "a generator in the step",
        NOBODY,
        LOOP,
        (
            change(
                "    optimizer.build",
                "    numbers = tf.random.Generator.from_seed(7)\n    optimizer.build",
            ),
            change(
                "outputs = model(inputs, training=True)",
                "noise = numbers.normal(tf.shape(inputs))\n        outputs = model(inputs + noise, training=True)",
            ),
        ),
    ),
    Program(
        "a batch for each replica",
        NOBODY,
        FIT,
        (change(".batch(BATCH)", ".batch(BATCH * strategy.num_replicas_in_sync)"),),
    ),
    Program(
        "a batch for each replica in a loop",
        NOBODY,
        LOOP,
        (
            change(".batch(BATCH)", ".batch(BATCH * strategy.num_replicas_in_sync)"),
            change(
                "global_batch_size=BATCH",
                "global_batch_size=BATCH * strategy.num_replicas_in_sync",
            ),
        ),
    ),
    Program(
        "a learning rate for each replica",
        NOBODY,
        FIT,
        (optimizer("SGD(0.01 * strategy.num_replicas_in_sync)"),),
    ),
    Program(
        "no seed",
        NOBODY,
        FIT,
        (
            change("tf.keras.utils.set_random_seed(0)\n", ""),
            change("default_rng(0)", "default_rng()"),
        ),
    ),
    Program("an uneven last batch in a loop", NOBODY, LOOP, (VERY_UNEVEN,)),
    Program(
        "attention",
        NOBODY,
        FIT,
        (
            optimizer("Adam(0.02)"),
            change(
                "model = tf.keras.Sequential([tf.keras.Input((3,)), *layers])",
                "first = tf.keras.Input((3,))\n"
                "    rows = tf.keras.layers.Reshape((3, 1))(first)\n"
                "    rows = tf.keras.layers.MultiHeadAttention(2, 4)(rows, rows)\n"
                "    rows = tf.keras.layers.Flatten()(rows)\n"
                "    model = tf.keras.Model(first, layers[1](layers[0](rows)))",
            ),
        ),
    ),
    Program(
        "Adam for many epochs",
        NOBODY,
        FIT,
        (optimizer("Adam(0.1)"), change("epochs=2", "epochs=60")),
    ),
    Program(
        "clipped after the sum",
        NOBODY,
        LOOP,
        (
            before_apply(
                "context = tf.distribute.get_replica_context()\n"
                '    gradients = context.all_reduce("SUM", gradients)\n'
                "    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)\n"
                "    gradients = [each / context.num_replicas_in_sync for each in gradients]"
            ),
        ),
    ),
    Program(
        "a recurrent layer",
        NOBODY,
        FIT,
        (
            layers("L.Reshape((3, 1)), L.LSTM(4), L.LayerNormalization(), L.Dense(1)"),
            optimizer("Adam(0.02)"),
        ),
    ),
    Program("averaged weights", NOBODY, FIT, (optimizer("Adam(0.02, use_ema=True)"),)),
)
