"""The repairs that are written: on the programs of the modes, on others, and on forms that are left alone. No TensorFlow."""

import ast
import textwrap

import pytest
from recorded import stack
from strategy_clinic.base import files
from strategy_clinic.examiner import repair, repair_values
from strategy_clinic.examiner.edits import Edit, Repair
from strategy_clinic.examiner.findings import Evidence, Finding, Location, Text
from strategy_clinic.examiner.repair import Source, written_repairs
from strategy_clinic.examiner.repair_sums import CONTEXT, GATHERED
from strategy_clinic.modes.fm50_clipped_before_the_sum import repair as clip_the_sum
from strategy_clinic.programs.text import WRONG, marked_lines

PATH = "/program/train.py"
HEAD = "import tensorflow as tf\n"


def written(mode, text, line, said=""):
    finding = Finding(mode, Location(stack(PATH, line)), Evidence.OBSERVED, Text(said), Text(""))
    return [*written_repairs(finding, line, text)]


def repaired(mode, text, said=""):
    """What the first repair makes of a program; the finding is at the line that ends with `# here`, which is taken off."""
    lines = (HEAD + textwrap.dedent(text)).splitlines()
    line = next(i for i, each in enumerate(lines, 1) if each.endswith("  # here"))
    whole = "\n".join(lines).replace("  # here", "") + "\n"
    found = written(mode, whole, line, said)
    return found[0].after.removeprefix(HEAD) if found else ""


# The programs of the modes


NOTED = "fm56"  # what a layer of Keras draws is noted, and no finding is repaired


@pytest.mark.parametrize("mode", [each for each in repair.repairers() if each != NOTED])
def test_the_broken_program_is_repaired_and_its_other_lines_stay(mode):
    text = files.program_text(mode, "broken")
    found = [each for line in marked_lines(text, WRONG) for each in written(mode, text, line)]
    assert found
    for each in found:
        touched = {line for edit in each.edits for line in range(edit.start[0], edit.end[0] + 1)}
        rest = [line for n, line in enumerate(text.splitlines(), 1) if n not in touched]
        after = iter(each.after.splitlines())
        assert all(line in after for line in rest)  # in their order
        compile(each.after, PATH, "exec")


@pytest.mark.parametrize("mode", repair.repairers())
def test_the_fixed_program_is_left_alone_or_repaired_to_python(mode):
    """No finding is at a line of it; if one were, nothing would break."""
    text = files.program_text(mode, "fixed")
    for line in range(1, text.count("\n") + 1):
        for each in written(mode, text, line):
            compile(each.after, PATH, "exec")


def test_a_repair_is_for_the_mode_of_its_folder():
    folders = {path.parent.name[:4] for path in files.package().glob("modes/*/repair.py")}
    assert folders == set(repair.repairers())
    assert len(folders) >= 12


# Other programs: the mode, the program, and what becomes of it

OTHERS = {
    "a mean that is returned": (
        "fm37",
        "return_value = 1\ndef criterion(e):\n    return tf.reduce_mean(e)  # here\n",
        "return_value = 1\ndef criterion(e):\n"
        "    return tf.reduce_mean(e) / tf.distribute.get_strategy().num_replicas_in_sync\n",
    ),
    "a mean within an expression": (
        "fm37",
        "x = 1 - tf.reduce_mean(e) ** 2  # here\n",
        "x = 1 - (tf.reduce_mean(e) / tf.distribute.get_strategy().num_replicas_in_sync) ** 2\n",
    ),
    "a mean over batches of a constant": (
        "fm37",
        "SIZE = 32\nd = data.batch(SIZE, drop_remainder=True)\ndef f(e):\n    x = tf.math.reduce_mean(e)  # here\n",
        "SIZE = 32\nd = data.batch(SIZE, drop_remainder=True)\ndef f(e):\n"
        "    x = tf.nn.compute_average_loss(e, global_batch_size=SIZE)\n",
    ),
    "a penalty": (
        "fm37",
        "loss = main + tf.add_n(model.losses)  # here\n",
        "loss = main + tf.nn.scale_regularization_loss(tf.add_n(model.losses))\n",
    ),
    "a loss object": (
        "fm37",
        "cce = tf.keras.losses.MeanSquaredError()  # here\ndef f(y, p):\n    return cce(y, p)\n",
        "cce = tf.keras.losses.MeanSquaredError()\ndef f(y, p):\n"
        "    return cce(y, p) / tf.distribute.get_strategy().num_replicas_in_sync\n",
    ),
    "a loss that a function computes": (
        "fm37",
        "def loss_of(e):\n    return other(e)\nvalue = loss_of(e)  # here\n",
        "def loss_of(e):\n    return other(e)\n"
        "value = (loss_of(e)) / tf.distribute.get_strategy().num_replicas_in_sync\n",
    ),
    "a normalization over several lines": (
        "fm38",
        "x = tf.keras.layers.BatchNormalization(  # here\n    momentum=0.9,\n)(x)\n",
        "x = tf.keras.layers.BatchNormalization(\n    momentum=0.9, synchronized=True\n)(x)\n",
    ),
    "an attribute under the scope": (
        "fm03",
        "s = tf.distribute.MirroredStrategy()\nself.net = build(\n    3,\n)  # here\n",
        "s = tf.distribute.MirroredStrategy()\nwith s.scope():\n    self.net = build(\n        3,\n    )\n",
    ),
    "in a main function": (
        "fm25",
        """\
        def main():
            mirrored = tf.distribute.MirroredStrategy()
            network = tf.keras.models.load_model("x.keras")  # here
            network.compile(
                optimizer="sgd",
            )
            network.fit(data)
        """,
        """\
        def main():
            mirrored = tf.distribute.MirroredStrategy()
            with mirrored.scope():
                network = tf.keras.models.load_model("x.keras")
                network.compile(
                    optimizer="sgd",
                )
            network.fit(data)
        """,
    ),
    "a checkpoint without arguments": (
        "fm05",
        "ema = tf.Variable(0.0)  # here\nckpt = tf.train.Checkpoint()\n",
        "ema = tf.Variable(0.0)\nckpt = tf.train.Checkpoint(ema=ema)\n",
    ),
    "a checkpoint that lacks a variable": (
        "fm05",
        "ema = tf.Variable(0.0)\nckpt = tf.train.Checkpoint(  # here\n    model=m,\n)\n",
        "ema = tf.Variable(0.0)\nckpt = tf.train.Checkpoint(\n    model=m, ema=ema\n)\n",
    ),
    "a path by keyword, and a manager": (
        "fm08",
        'FOLDER = "x"\nm = tf.train.CheckpointManager(c, directory=FOLDER)\nc.restore(save_path="x/ckpt")  # here\n',
        'FOLDER = "x"\n'
        "m = tf.train.CheckpointManager(c, directory=FOLDER)\n"
        "c.restore(save_path=tf.train.latest_checkpoint(FOLDER))\n",
    ),
    "a folder that is joined": (
        "fm08",
        "import os\ndef go(d):\n    c.save(os.path.join(d, 'a'))\n    p = tf.train.latest_checkpoint(d + 'a')  # here\n",
        "import os\ndef go(d):\n    c.save(os.path.join(d, 'a'))\n    p = tf.train.latest_checkpoint(d)\n",
    ),
    "a folder of a manager of an object": (
        "fm08",
        """
        HOME = Path("run")
        class Job:
            def __init__(self):
                self.last = tf.train.CheckpointManager(c, str(HOME / "last"), 1)
                self.m = tf.train.CheckpointManager(c, str(HOME / "best"), 1)

        def best():
            c.restore(tf.train.latest_checkpoint(str(HOME / "best" / "a")))  # here
        """,
        """
        HOME = Path("run")
        class Job:
            def __init__(self):
                self.last = tf.train.CheckpointManager(c, str(HOME / "last"), 1)
                self.m = tf.train.CheckpointManager(c, str(HOME / "best"), 1)

        def best():
            c.restore(tf.train.latest_checkpoint(str(HOME / "best")))
        """,
    ),
    "a folder in an f-string": (
        "fm08",
        "d = 'x'\nc.save(f'{d}/ckpt')\nc.restore('ckpt')  # here\n",
        "import os\nd = 'x'\nc.save(f'{d}/ckpt')\nc.restore(tf.train.latest_checkpoint(os.path.dirname(f'{d}/ckpt')))\n",
    ),
    "gradients that are normalised by hand": (
        "fm50",
        """
        def step(x):
            grads = tape.gradient(loss, weights)
            size = tf.linalg.global_norm(grads)  # here
            grads = [each / size for each in grads]
            adam.apply_gradients(zip(grads, w))
        """,
        """
        def step(x):
            grads = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, weights))
            size = tf.linalg.global_norm(grads)
            grads = [each / size for each in grads]
            adam.apply_gradients(zip([each / tf.distribute.get_replica_context().num_replicas_in_sync for each in grads], w))
        """,
    ),
    "gradients that another function clips": (
        "fm50",
        """
        def step(x):
            grads = clipped(tape.gradient(loss, weights))  # here
            adam.apply(grads, weights)
        """,
        """
        def step(x):
            grads = clipped(tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, weights)))
            adam.apply([each / tf.distribute.get_replica_context().num_replicas_in_sync for each in grads], weights)
        """,
    ),
    "gradients that are computed, clipped and applied at once": (
        "fm50",
        """
        def step(x):
            adam.apply_gradients(zip(own(tape.gradient(l, w)), w))  # here
        """,
        """
        def step(x):
            adam.apply_gradients(zip([each / tf.distribute.get_replica_context().num_replicas_in_sync \
for each in own(tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(l, w)))], w))
        """,
    ),
    "layers in lists": (
        "fm65",
        """
        class Net(keras.Model):
            def __init__(self):
                super().__init__()
                self.first = [Dense(3), Dense(4)]
                self.later = []
                for _ in range(3):
                    self.later.append(Dense(3))
                self.sizes = {}

        saved = tf.train.Checkpoint(net=Net())  # here
        """,
        """
        class Net(keras.Model):
            def __init__(self):
                super().__init__()
                self.first = tuple([Dense(3), Dense(4)])
                self.later = []
                for _ in range(3):
                    self.later.append(Dense(3))
                self.sizes = {}
                self.later = tuple(self.later)

        saved = tf.train.Checkpoint(net=Net())
        """,
    ),
    "a model of a checkpoint that is called below": (
        "fm35",
        "net = made()\nsaved = tf.train.Checkpoint(net=net)\nkeeper = tf.train.CheckpointManager(saved, 'a', 1)\n"
        "if keeper.latest_checkpoint:\n    saved.restore(keeper.latest_checkpoint)  # here\nnet(tf.zeros((1, 3)))\n",
        "net = made()\nsaved = tf.train.Checkpoint(net=net)\nkeeper = tf.train.CheckpointManager(saved, 'a', 1)\n"
        "if keeper.latest_checkpoint:\n    net(tf.zeros((1, 3)))\n    saved.restore(keeper.latest_checkpoint)\n"
        "net(tf.zeros((1, 3)))\n",
    ),
    "a restore before the examples are there": (
        "fm35",
        "net = made()\nsaved = tf.train.Checkpoint(net=net)\nif path:\n    saved.restore(path)  # here\n"
        "x = rows()\nnet(x)\n",
        "net = made()\nsaved = tf.train.Checkpoint(net=net)\nx = rows()\nnet(x)\nif path:\n    saved.restore(path)\n",
    ),
    "a method that builds": (
        "fm35",
        """
        class State:
            def __init__(self):
                self.net = made()
                self.saved = tf.train.Checkpoint(**self.parts())
                self.saved.restore(path)  # here

            def build(self):
                self.net.build((None, 3))

            def parts(self):
                return dict(net=self.net)
        """,
        """
        class State:
            def __init__(self):
                self.net = made()
                self.saved = tf.train.Checkpoint(**self.parts())
                self.build()
                self.saved.restore(path)

            def build(self):
                self.net.build((None, 3))

            def parts(self):
                return dict(net=self.net)
        """,
    ),
    "traced functions of a loop": (
        "fm70",
        """
        @tf.function  # here
        def step(x):
            return net(x)

        for fold in range(3):
            with s.scope():
                net = made()
            step(x)
        """,
        """
        @tf.function
        def step(x):
            return net(x)

        for fold in range(3):
            with s.scope():
                net = made()
            step = tf.function(step.python_function)
            step(x)
        """,
    ),
    "a loss of several results": (
        "fm37",
        """
        def step(x):
            loss, parts = losses(x)
            grads = tape.gradient(loss, weights)  # here
        """,
        """
        def step(x):
            loss, parts = losses(x)
            grads = tape.gradient(loss, weights, output_gradients=tf.ones_like(loss) / \
tf.distribute.get_strategy().num_replicas_in_sync)
        """,
    ),
    "gradients of two lists": (
        "fm13",
        "a, b = tape.gradient(loss, [x, y])  # here\n",
        "a, b = tape.gradient(loss, [x, y], unconnected_gradients=tf.UnconnectedGradients.ZERO)\n",
    ),
    "a dataset function of another form": (
        "fm21",
        "def feed(ctx):\n    d = source().batch(N, drop_remainder=True)  # here\n    return d\n"
        "d = s.distribute_datasets_from_function(feed)\n",
        "def feed(ctx):\n    d = source().batch(ctx.get_per_replica_batch_size(N), drop_remainder=True)\n"
        "    return d\nd = s.distribute_datasets_from_function(feed)\n",
    ),
    "a sum that is chosen": (
        "fm23",
        "s = tf.distribute.MirroredStrategy()\n"
        "t = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)  # here\n",
        "s = tf.distribute.MirroredStrategy()\nwith s.scope():\n"
        "    t = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)\n",
    ),
    "a size in a name": (
        "fm26",
        "size = mirrored.num_replicas_in_sync * PER_STEP  # here\n",
        "size = PER_STEP\n",
    ),
    "a decorator with arguments": (
        "fm40",
        "@tf.function(jit_compile=False)  # here\ndef apply(g):\n    pass\n",
        "def apply(g):\n    pass\n",
    ),
    "a function that is traced by name": (
        "fm40",
        "apply = tf.function(plain)  # here\n",
        "apply = plain\n",
    ),
    "weights that are loaded": (
        "fm46",
        'if resume:\n    net.load_weights("w.weights.h5")  # here\n',
        "if resume:\n    rate_before_restore = float(tf.convert_to_tensor(net.optimizer.learning_rate))\n"
        '    net.load_weights("w.weights.h5")\n    net.optimizer.learning_rate = rate_before_restore\n',
    ),
    "a rate that is set after the save": (
        "fm46",
        """
        for epoch in range(9):
            train()
            keeper.save()
            print(epoch)
            if epoch > 3:
                adam.learning_rate.assign(  # here
                    0.1
                )
        """,
        """
        for epoch in range(9):
            train()
            if epoch > 3:
                adam.learning_rate.assign(
                    0.1
                )
            keeper.save()
            print(epoch)
        """,
    ),
    "a rate that is read before the restore": (
        "fm46",
        "rate = adam.learning_rate.numpy()  # here\nif path:\n    saved.restore(path)\nuse(rate)\n",
        "if path:\n    saved.restore(path)\nrate = adam.learning_rate.numpy()\nuse(rate)\n",
    ),
    "an optimizer that a method restores": (
        "fm46",
        """
        class Job:
            def __init__(self):
                self.adam = keras.optimizers.Adam()

            def resume(self):
                self.keeper.restore_or_initialize()  # here
        """,
        """
        class Job:
            def __init__(self):
                self.adam = keras.optimizers.Adam()

            def resume(self):
                rate_before_restore = float(tf.convert_to_tensor(self.adam.learning_rate))
                self.keeper.restore_or_initialize()
                self.adam.learning_rate = rate_before_restore
        """,
    ),
    "the value of one replica": (
        "fm39",
        "def total(self, x):\n    return float(self.s.experimental_local_results(x)[0])  # here\n",
        'def total(self, x):\n    return float(self.s.reduce("SUM", x, axis=None))\n',
    ),
    "one of the values of replicas": (
        "fm39",
        "def show(s):\n    x = s.run(f)\n    print(x.values[0].numpy())  # here\n",
        'def show(s):\n    x = s.run(f)\n    print(s.reduce("SUM", x, axis=None).numpy())\n',
    ),
    "a mean of shares": (
        "fm39",
        'y = {k: s.reduce("MEAN", v, axis=None) for k, v in x.items()}  # here\n',
        'y = {k: s.reduce("SUM", v, axis=None) for k, v in x.items()}\n',
    ),
    "an optimizer by keyword": (
        "fm10",
        'net.compile(loss="mse", optimizer=adam)  # here\n',
        'net.compile(loss="mse", optimizer=type(adam).from_config(adam.get_config()))\n',
    ),
    "a mean of which another mean is taken": (
        "fm37",
        "def step(x):\n    return tf.reduce_mean(f(x))  # here\n"
        'def train(x):\n    return s.reduce("MEAN", s.run(step, args=(x,)), axis=None)\n',
        "def step(x):\n    return tf.reduce_mean(f(x)) / tf.distribute.get_strategy().num_replicas_in_sync\n"
        'def train(x):\n    return s.reduce("SUM", s.run(step, args=(x,)), axis=None)\n',
    ),
    "a count of a range in another function": (
        "fm77",
        "def data(n):\n    return d.shuffle(9, seed=n)  # here\nfor n, e in enumerate(range(done, 9)):\n    fit(data(n))\n",
        "def data(n):\n    return d.shuffle(9, seed=n)\nfor n, e in enumerate(range(done, 9), done):\n    fit(data(n))\n",
    ),
    "a variable with an aggregation": (
        "fm66",
        "class L(Layer):\n    def build(self, s):\n"
        "        self.m = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)  # here\n",
        "class L(Layer):\n    def build(self, s):\n        self.m = self.add_weight(shape=(), initializer="
        'tf.keras.initializers.Constant(0.0), trainable=False, aggregation="mean")\n',
    ),
    "what a function fits becomes trainable": (
        "fm10",
        "def stage(net):\n    net.fit(data)\nnet = make(base)\nbase.trainable = True  # here\nstage(net)\n",
        "def stage(net):\n    net.fit(data)\nnet = make(base)\nbase.trainable = True\n"
        "with net.distribute_strategy.scope():\n"
        "    net.compile_from_config(net.get_compile_config())\nstage(net)\n",
    ),
    "a model that is compiled before what it has becomes trainable": (
        "fm10",
        "from own import Adam, far\ndef stage(net, rate):\n    if new:\n        net.compile(Adam(rate), loss=far)\n"
        "    told = net.fit(data)  # here\n",
        "from own import Adam, far\ndef stage(net, rate):\n    if new:\n        net.compile(Adam(rate), loss=far)\n"
        "    with net.distribute_strategy.scope():\n        net.compile(Adam(rate), loss=far)\n"
        "    told = net.fit(data)\n",
    ),
    "data that a function fits": (
        "fm42",
        "def stage(net, data, n):\n    net.fit(x=data, steps_per_epoch=n)\nstage(net, data, 4)  # here\n",
        "def stage(net, data, n):\n    net.fit(x=data.repeat(), steps_per_epoch=n)\nstage(net, data, 4)\n",
    ),
    "a generator that has a name": (
        "fm64",
        "given = batches(3)\nnet.evaluate(given)  # here\n",
        "given = tf.data.Dataset.from_generator(lambda: batches(3), output_signature="
        "tf.nest.map_structure(lambda each: tf.TensorSpec((None, *each.shape[1:]), each.dtype), "
        "next(batches(3))))\nnet.evaluate(given)\n",
    ),
    "a model that a function is given": (
        "fm69",
        "def stage(net):\n    net.fit(data)  # here\n    return net\n",
        'def stage(net):\n    net.save("trained.keras")\n    with net.distribute_strategy.scope():\n'
        '        net = tf.keras.models.load_model("trained.keras")\n    net.fit(data)\n    return net\n',
    ),
    "an optimizer that only a model has": (
        "fm32",
        "def make():\n    net.compile(Adam())  # here\n    return net\n",
        "def make():\n    net.compile(Adam())\n    net.optimizer.build(net.trainable_variables)\n"
        "    return net\n",
    ),
    "a loss and a layer that are needed": (
        "fm30",
        "def far(y, p):\n    return y\nclass Own(tf.keras.Model):\n    pass\ndef other():\n    pass\n"
        'm.compile("sgd", loss=far)\nload(path)  # here\n',
        "@tf.keras.utils.register_keras_serializable()\ndef far(y, p):\n    return y\n"
        "@tf.keras.utils.register_keras_serializable()\nclass Own(tf.keras.Model):\n    pass\n"
        'def other():\n    pass\nm.compile("sgd", loss=far)\nload(path)\n',
    ),
    "a mean that is returned by its name": (
        "fm49",
        "def far(y, p):\n    gap = tf.abs(y - p)\n    mean = tf.reduce_mean(gap)\n    return mean  # here\n",
        "def far(y, p):\n    gap = tf.abs(y - p)\n    mean = tf.reduce_mean(gap, axis=-1)\n    return mean\n",
    ),
    "a mean that is returned by its name, which is declared with its type": (
        "fm49",
        "def far(y, p):\n    mean: tf.Tensor\n    mean: tf.Tensor = tf.reduce_mean(y - p)\n    return mean  # here\n",
        "def far(y, p):\n    mean: tf.Tensor\n    mean: tf.Tensor = tf.reduce_mean(y - p, axis=-1)\n    return mean\n",
    ),
    "a generator that has a name and a type": (
        "fm64",
        "given: Iterator = batches(3)\nnet.evaluate(given)  # here\n",
        "given: Iterator = tf.data.Dataset.from_generator(lambda: batches(3), output_signature="
        "tf.nest.map_structure(lambda each: tf.TensorSpec((None, *each.shape[1:]), each.dtype), "
        "next(batches(3))))\nnet.evaluate(given)\n",
    ),
    "an optimizer that is made in a function": (
        "fm50",
        "def make():\n    return tf.keras.optimizers.Adam(clipnorm=LIMIT)  # here\n",
        """\
        @tf.keras.utils.register_keras_serializable()
        class ClipsTheSum(tf.keras.optimizers.Adam):
            def apply(self, grads, trainable_variables=None):
                replica = tf.distribute.get_replica_context()
                total = [tf.convert_to_tensor(each) for each in grads if each is not None]
                total, n = replica.all_reduce("SUM", total), replica.num_replicas_in_sync
                own = iter([each / n for each in [tf.clip_by_norm(each, self.clipnorm) for each in total]])
                super().apply([each if each is None else next(own) for each in grads], trainable_variables)


        def make():
            return ClipsTheSum(clipnorm=LIMIT)
        """,
    ),
    "a policy": (
        "fm51",
        'tf.keras.config.set_dtype_policy("mixed_float16")  # here\n',
        'tf.keras.config.set_dtype_policy("mixed_bfloat16")\n',
    ),
    "batches of a chain": (
        "fm52",
        "data = (\n    source.shuffle(9)\n    .batch(SIZE)  # here\n)\n",
        "data = (\n    source.shuffle(9)\n    .batch(SIZE, drop_remainder=True)\n)\n",
    ),
    "a divisor, and the number of replicas": (
        "fm55",
        "def f(m, e):\n    n = tf.reduce_sum(m) * s.num_replicas_in_sync  # here\n    return e / n\n",
        'def f(m, e):\n    n = tf.distribute.get_replica_context().all_reduce("SUM", tf.reduce_sum(m))\n'
        "    return e / n\n",
    ),
    "a loss that a function from elsewhere computes": (
        "fm37",
        "value = library.loss_of(e)  # here\n",
        "value = (library.loss_of(e)) / tf.distribute.get_strategy().num_replicas_in_sync\n",
    ),
    "a sum that is divided by the size of the part": (
        "fm37",
        "def f(e):\n    return tf.reduce_sum(e) / tf.cast(tf.size(e), e.dtype)  # here\n",
        "def f(e):\n    return (tf.reduce_sum(e) / tf.cast(tf.size(e), e.dtype)) / "
        "tf.distribute.get_strategy().num_replicas_in_sync\n",
    ),
    "a loss of which gradients are asked for": (
        "fm37",
        "def f(x):\n    with tf.GradientTape() as tape:\n        loss = criterion(x)\n"
        "    return tape.gradient(loss, w)  # here\n",
        "def f(x):\n    with tf.GradientTape() as tape:\n        loss = (criterion(x)) / "
        "tf.distribute.get_strategy().num_replicas_in_sync\n    return tape.gradient(loss, w)\n",
    ),
    "a mean under another name": (
        "fm37",
        "self.reduce = tf.reduce_mean  # here\n",
        "self.reduce = lambda *x, **axes: tf.reduce_mean(*x, **axes) / "
        "tf.distribute.get_strategy().num_replicas_in_sync\n",
    ),
    "statistics that an option leaves apart": (
        "fm38",
        "x = tf.keras.layers.BatchNormalization(synchronized=options.sync)  # here\n",
        "x = tf.keras.layers.BatchNormalization(synchronized=True)\n",
    ),
    "a normalization whose arguments are kept": (
        "fm38",
        "norm = partial(layers.BatchNormalization, momentum=0.7)\nx = norm()(x)  # here\n",
        "norm = partial(layers.BatchNormalization, momentum=0.7, synchronized=True)\nx = norm()(x)\n",
    ),
    "a normalization whose arguments are passed on": (
        "fm38",
        "x = layers.BatchNormalization(momentum=0.8, **norm)(x)  # here\n",
        'x = layers.BatchNormalization(momentum=0.8, **{**norm, "synchronized": True})(x)\n',
    ),
    "an optimizer of an object": (
        "fm09",
        """
        class Bench:
            def __init__(self):
                self.model = made()
                self.adam = keras.optimizers.Adam()
                self.start = Checkpoint(o=self.adam).write(PATH)  # here

            def step(self, batch):
                weights = self.model.trainable_variables
                self.adam.apply_gradients(zip(self.gradients(batch), weights))
        """,
        """
        class Bench:
            def __init__(self):
                self.model = made()
                self.adam = keras.optimizers.Adam()
                self.adam.build(self.model.trainable_variables)
                self.start = Checkpoint(o=self.adam).write(PATH)

            def step(self, batch):
                weights = self.model.trainable_variables
                self.adam.apply_gradients(zip(self.gradients(batch), weights))
        """,
    ),
    "an optimizer that is made before its model": (
        "fm09",
        """
        def main():
            adam = optimizers.Adam()
            net = made()
            save(adam)  # here
            for batch in data:
                adam.apply(gradients(batch), net.trainable_weights)
        """,
        """
        def main():
            adam = optimizers.Adam()
            net = made()
            adam.build(net.trainable_variables)
            save(adam)
            for batch in data:
                adam.apply(gradients(batch), net.trainable_weights)
        """,
    ),
    "an optimizer that the program builds too late": (
        "fm09",
        "net = f()\na = keras.optimizers.Adam()\nsave(a)  # here\na.build(net.variables)\n",
        "net = f()\na = keras.optimizers.Adam()\na.build(net.variables)\nsave(a)\na.build(net.variables)\n",
    ),
    "one of two optimizers": (
        "fm09",
        """
        with s.scope():
            a, b = made(), made()
            one = tf.keras.optimizers.Adam()
            other = tf.keras.optimizers.SGD()
            b.compile(other)
        save(other)  # here
        """,
        """
        with s.scope():
            a, b = made(), made()
            one = tf.keras.optimizers.Adam()
            other = tf.keras.optimizers.SGD()
            other.build(b.trainable_variables)
            b.compile(other)
        save(other)
        """,
    ),
    "a counter of a module": (
        "fm05",
        """
        import math

        class Average(tf.Module):
            def __init__(self):
                self.updates = 0  # here

            def update(self):
                self.updates *= 2
        """,
        """
        import math
        import json

        class Average(tf.Module, tf.train.experimental.PythonState):
            def __init__(self):
                self.updates = 0

            def update(self):
                self.updates *= 2

            def serialize(self):
                return json.dumps([self.updates], default=float)

            def deserialize(self, kept):
                [self.updates] = json.loads(kept)
        """,
    ),
    "numbers of a function": (
        "fm54",
        """
        def main():
            with s.scope():
                net = made()
                saver = tf.train.Checkpoint(net=net)
            best, waited = float("inf"), 0
            for loss in losses():
                total = 0.0
                if loss < best:
                    best, waited = loss, 0
                else:
                    waited += 1
                    slow_down()  # here
        """,
        """\
        import json

        def main():
            best, waited = float("inf"), 0
            with s.scope():
                net = made()
                class KeptNumbers(tf.train.experimental.PythonState):
                    def serialize(self):
                        return json.dumps([best, waited], default=float)

                    def deserialize(self, kept):
                        nonlocal best, waited
                        [best, waited] = json.loads(kept)

                saver = tf.train.Checkpoint(net=net, numbers=KeptNumbers())
            for loss in losses():
                total = 0.0
                if loss < best:
                    best, waited = loss, 0
                else:
                    waited += 1
                    slow_down()
        """,
    ),
    "an object that is changed elsewhere, and saved by what passes it on": (
        "fm54",
        """
        import json

        @dataclass
        class Progress:
            best: float = 1e9  # here
            limit: int = 3

        class Vault:
            def __init__(self, folder, **parts):
                self.saved = tf.train.Checkpoint(**parts)

        def main():
            progress = Progress()
            vault = Vault("a", net=net)
            progress.best = 2.0
        """,
        """
        import json

        @dataclass
        class Progress(tf.train.experimental.PythonState):
            best: float = 1e9
            limit: int = 3

            def serialize(self):
                return json.dumps([self.best], default=float)

            def deserialize(self, kept):
                [self.best] = json.loads(kept)

        class Vault:
            def __init__(self, folder, **parts):
                self.saved = tf.train.Checkpoint(**parts)

        def main():
            progress = Progress()
            vault = Vault("a", net=net, progress=progress)
            progress.best = 2.0
        """,
    ),
    "variables of an object that decides": (
        "fm54",
        """
        class Slow(Callback):
            def __init__(self):
                self.best = tf.Variable(0.0)

        def main():
            slow = Slow()
            saver = tf.train.Checkpoint(net=net)
            net.fit(data, callbacks=[slow])  # here
        """,
        """
        class Slow(Callback):
            def __init__(self):
                self.best = tf.Variable(0.0)

        def main():
            slow = Slow()
            saver = tf.train.Checkpoint(net=net, best=slow.best)
            net.fit(data, callbacks=[slow])
        """,
    ),
    "a generator of an object": (
        "fm77",
        """
        import json

        class Rows:
            def __init__(self):
                self.rng = np.random.default_rng(3)

            def order(self):
                return self.rng.permutation(9)  # here

        class Job:
            def __init__(self):
                self.rows = Rows()
                self.saved = tf.train.Checkpoint(**self.parts())

            def parts(self):
                return {"net": self.net}
        """,
        """
        import json

        class Rows:
            def __init__(self):
                self.rng = np.random.default_rng(3)

            def order(self):
                return self.rng.permutation(9)

        class KeptGenerator(tf.train.experimental.PythonState):
            def __init__(self, generator):
                self.generator = generator

            def serialize(self):
                return json.dumps(self.generator.bit_generator.state)

            def deserialize(self, kept):
                self.generator.bit_generator.state = json.loads(kept)


        class Job:
            def __init__(self):
                self.rows = Rows()
                self.saved = tf.train.Checkpoint(**self.parts(), rng=KeptGenerator(self.rows.rng))

            def parts(self):
                return {"net": self.net}
        """,
    ),
    "an object of another file": (
        "fm77",
        """
        import json

        class Job:
            def __init__(self):
                self.model = made()
                self.rows = Rows(3)
                self.saved = tf.train.Checkpoint(model=self.model)

            def run(self):
                self.step(self.rows.next())  # here
        """,
        """
        import json

        class KeptObject(tf.train.experimental.PythonState):
            def __init__(self, thing):
                self.thing = thing

            def serialize(self):
                kept = vars(self.thing)
                generators = {k: v.bit_generator.state for k, v in kept.items() if hasattr(v, "bit_generator")}
                numbers = {k: v for k, v in kept.items() if v is None or isinstance(v, (int, float))}
                return json.dumps([numbers, generators])

            def deserialize(self, kept):
                numbers, generators = json.loads(kept)
                vars(self.thing).update(numbers)
                for name, state in generators.items():
                    vars(self.thing)[name].bit_generator.state = state


        class Job:
            def __init__(self):
                self.model = made()
                self.rows = Rows(3)
                self.saved = tf.train.Checkpoint(model=self.model, rows=KeptObject(self.rows))

            def run(self):
                self.step(self.rows.next())
        """,
    ),
    "an optimizer of another object": (
        "fm29",
        """
        class Learner:
            def __init__(self):
                self.adam = keras.optimizers.Adam()

        def main():
            learner = Learner()
            saved = tf.train.Checkpoint(net=learner.net)  # here
        """,
        """
        class Learner:
            def __init__(self):
                self.adam = keras.optimizers.Adam()

        def main():
            learner = Learner()
            saved = tf.train.Checkpoint(net=learner.net, adam=learner.adam)
        """,
    ),
    "what an object remembers that is made beside a checkpoint": (
        "fm54",
        """
        import json

        class Patience:
            def __init__(self, limit):
                self.best, self.waited = float("inf"), 0  # here
                self.limit = 3

            def better(self, loss):
                self.waited += 1
                self.best, self.waited = loss, 0

        def main():
            patience = Patience(2)
            saver = tf.train.Checkpoint(net=net)
        """,
        """
        import json

        class Patience(tf.train.experimental.PythonState):
            def __init__(self, limit):
                self.best, self.waited = float("inf"), 0
                self.limit = 3

            def better(self, loss):
                self.waited += 1
                self.best, self.waited = loss, 0

            def serialize(self):
                return json.dumps([self.best, self.waited], default=float)

            def deserialize(self, kept):
                [self.best, self.waited] = json.loads(kept)

        def main():
            patience = Patience(2)
            saver = tf.train.Checkpoint(net=net, patience=patience)
        """,
    ),
    "a best value of an object that has a checkpoint": (
        "fm54",
        """
        import json

        class Job():
            best = None

            def judge(self, loss):
                self.best = loss  # here
                tf.train.Checkpoint(net=self.net).save(PATH)
        """,
        """
        import json

        class Job(tf.train.experimental.PythonState):
            best = None

            def judge(self, loss):
                self.best = loss
                tf.train.Checkpoint(net=self.net, job=self).save(PATH)

            def serialize(self):
                return json.dumps([self.best], default=float)

            def deserialize(self, kept):
                [self.best] = json.loads(kept)
        """,
    ),
    "a value beside one that a file has": (
        "fm54",
        """
        class Slow(Callback):
            def __init__(self):
                self.mean, self.best = 0.0, None  # here

            def resume(self):
                told = json.loads(PATH.read_text())
                self.mean = float(told["mean"])

            def on_epoch_end(self, epoch, logs):
                PATH.write_text(json.dumps({"epoch": epoch, "mean": self.mean}))
        """,
        """
        class Slow(Callback):
            def __init__(self):
                self.mean, self.best = 0.0, None

            def resume(self):
                told = json.loads(PATH.read_text())
                self.mean = float(told["mean"])
                self.best = float(told["best"])

            def on_epoch_end(self, epoch, logs):
                PATH.write_text(json.dumps({"epoch": epoch, "mean": self.mean, "best": self.best}))
        """,
    ),
    "a name beside one that an archive has": (
        "fm54",
        """
        def main():
            best = 9.0  # here
            if PATH.exists():
                epoch = int(np.load(PATH)["epoch"])
            np.savez(PATH, epoch=epoch)
        """,
        """
        def main():
            best = 9.0
            if PATH.exists():
                epoch = int(np.load(PATH)["epoch"])
                best = int(np.load(PATH)["best"])
            np.savez(PATH, epoch=epoch, best=best)
        """,
    ),
    "a size that is divided by the processes": (
        "fm21",
        "def make(ctx):\n    size = whole // ctx.num_input_pipelines  # here\n    return d.batch(size)\n",
        "def make(ctx):\n    size = ctx.get_per_replica_batch_size(whole)\n    return d.batch(size)\n",
    ),
    "a dictionary of what is saved": (
        "fm05",
        "class Run:\n    def __init__(self):\n        self.seen = tf.Variable(0)\n"
        '        self.net = make()\n    def parts(self):\n        return {"net": self.net}  # here\n',
        "class Run:\n    def __init__(self):\n        self.seen = tf.Variable(0)\n"
        '        self.net = make()\n    def parts(self):\n        return {"net": self.net, "seen": self.seen}\n',
    ),
    "an optimizer that is not saved": (
        "fm29",
        "adam = tf.keras.optimizers.Adam()\nsaved = tf.train.Checkpoint(model=net)  # here\n",
        "adam = tf.keras.optimizers.Adam()\nsaved = tf.train.Checkpoint(model=net, adam=adam)\n",
    ),
    "weights that are loaded before the optimizer is built": (
        "fm29",
        "net.load_weights(path)  # here\n",
        "net.optimizer.build(net.trainable_variables)\nnet.load_weights(path)\n",
    ),
    "a loop in a function that is given the strategy": (
        "fm53",
        "def train(strategy, data):\n    for i, batch in enumerate(data):  # here\n        strategy.run(step, (batch,))\n",
        "def train(strategy, data):\n"
        "    for i, batch in enumerate(strategy.experimental_distribute_dataset(data)):\n"
        "        strategy.run(step, (batch,))\n",
    ),
    "a dataset that a method returns": (
        "fm53",
        "class Job:\n    def data(self):\n        return source.batch(8)  # here\n"
        "    def run(self, x):\n        self.strategy.run(step, (x,))\n",
        "class Job:\n    def data(self):\n"
        "        return self.strategy.experimental_distribute_dataset(source.batch(8))\n"
        "    def run(self, x):\n        self.strategy.run(step, (x,))\n",
    ),
    "gradients that a step clips": (
        "fm50",
        "def step():\n    gradients, _ = tf.clip_by_global_norm(g, LIMIT)  # here\n    return gradients\n",
        "def step():\n    gradients, _ = tf.clip_by_global_norm("
        'tf.distribute.get_replica_context().all_reduce("SUM", g), LIMIT)\n'
        "    gradients = [each / tf.distribute.get_replica_context().num_replicas_in_sync for each in gradients]\n"
        "    return gradients\n",
    ),
    "a callback after what saves": (
        "fm54",
        "m.fit(x, callbacks=[save, slow, report])  # here\n",
        "m.fit(x, callbacks=[slow, report, save])\n",
    ),
    "a mean that a metric gets": (
        "fm19",
        "self.m.update_state(tf.reduce_mean(f(x)))  # here\n",
        "self.m.update_state(f(x))\n",
    ),
    "a mean of the replicas' means": (
        "fm19",
        "def part(x):\n    return tf.reduce_mean(f(x))\ndef whole(x):\n"
        '    each = s.run(part, (x,))\n    return s.reduce("MEAN", each, axis=None)  # here\n',
        "def part(x):\n    return f(x)\ndef whole(x):\n"
        '    each = s.run(part, (x,))\n    return s.reduce("MEAN", each, axis=0)\n',
    ),
    "a count from the start of the process": (
        "fm77",
        "for epoch in range(first, last):\n    train(epoch - first)  # here\n",
        "for epoch in range(first, last):\n    train(epoch)\n",
    ),
    "a range from the start of the process": (
        "fm77",
        "data = tf.data.Dataset.range(epochs - first).map(f)  # here\n",
        "data = tf.data.Dataset.range(first, epochs).map(f)\n",
    ),
    "an enumeration from the start of the process": (
        "fm77",
        "for i, epoch in enumerate(range(first, last)):\n    train(i)  # here\n",
        "for i, epoch in enumerate(range(first, last), first):\n    train(i)\n",
    ),
    "data that fit gets from the start": (
        "fm77",
        "model.fit(stream(0, last), initial_epoch=first)  # here\n",
        "model.fit(stream(first, last), initial_epoch=first)\n",
    ),
    "a divisor that has a name": (
        "fm55",
        "loss = total / count / context.num_replicas_in_sync  # here\n",
        'loss = total / tf.distribute.get_replica_context().all_reduce("SUM", count)\n',
    ),
    "a divisor that is computed above": (
        "fm55",
        "def f(x):\n    total, count = sums(x)  # here\n    return total / count\n",
        "def f(x):\n    total, count = sums(x)\n"
        '    return total / tf.distribute.get_replica_context().all_reduce("SUM", count)\n',
    ),
    "examples that are compared with each other": (
        "fm55",
        "def f(a, b):\n    near = tf.matmul(a, b, transpose_b=True)  # here\n    return loss(tf.range(N), near)\n",
        "def f(a, b):\n    near = tf.matmul(a, tf.distribute.get_replica_context().all_gather(b, axis=0), "
        "transpose_b=True)\n    return loss((tf.range(N) + tf.distribute.get_replica_context()"
        ".replica_id_in_sync_group * N), near)\n",
    ),
    "a metric that is a function": (
        "fm44",
        "from ratios import share\nGIVEN = [share, Hits()]\nm.compile(sgd, metrics=GIVEN)  # here\n",
        """\
        from ratios import share
        def of_all_replicas(metric):
            def whole(*given):
                replica = tf.distribute.get_replica_context()
                return metric(*[replica.all_gather(each, axis=0) if replica else each for each in given])

            whole.__name__ = getattr(metric, "__name__", "metric")
            return whole


        GIVEN = [of_all_replicas(share), Hits()]
        m.compile(sgd, metrics=GIVEN)
        """,
    ),
    "a metric that adds up ratios": (
        "fm44",
        "class F(Metric):\n    def update_state(self, y, p, weights=None):\n        both = f(y, p)\n"
        "        self.a.assign_add(both / tf.maximum(g(y), 1))\n        self.n.assign_add(1.0)\n"
        "    def result(self):\n        return self.a / self.n  # here\n",
        "class F(Metric):\n    def update_state(self, y, p, weights=None):\n        both = f(y, p)\n"
        "        self.a.assign_add(both)\n        self.n.assign_add(tf.maximum(g(y), 1))\n"
        "    def result(self):\n        return self.a / self.n\n",
    ),
    "a metric that is the mean of something else": (
        "fm44",
        'class F(Metric):\n    def update_state(self, y, p, weights=None):\n        """Adds."""\n'
        "        self.a.assign_add(f(y, p))\n    def result(self):\n        return self.a  # here\n",
        'class F(Metric):\n    def update_state(self, y, p, weights=None):\n        """Adds."""\n'
        "        replica = tf.distribute.get_replica_context()\n"
        "        y, p = [replica.all_gather(each, axis=0) if replica else each for each in (y, p)]\n"
        "        self.a.assign_add(f(y, p))\n    def result(self):\n        return self.a\n",
    ),
    "a mean of ratios": (
        "fm44",
        "self.f = Mean()  # here\ndef step(y, p):\n    share = hits(y, p) / found(p)\n    self.f.update_state(share)\n",
        "self.f = Mean()\ndef step(y, p):\n    share = hits(y, p) / found(p)\n    self.f.update_state(share, found(p))\n",
    ),
    "a ratio of counts in a test step": (
        "fm44",
        'class M(Model):\n    def test_step(self, data):\n        return {"f": f(*counts(data))}  # here\n',
        'class M(Model):\n    def test_step(self, data):\n        return {"f": f(*'
        '[tf.distribute.get_replica_context().all_reduce("SUM", each) for each in counts(data)])}\n',
    ),
    "a ratio of sums that the replicas return": (
        "fm44",
        "def part(x):\n    n = tf.reduce_sum(x)\n    return tf.math.divide_no_nan(tf.reduce_sum(f(x)), n)\n"
        'def whole(x):\n    return s.reduce("SUM", s.run(part, (x,)), axis=None)  # here\n',
        'def part(x):\n    n = tf.distribute.get_replica_context().all_reduce("SUM", tf.reduce_sum(x))\n'
        "    return tf.math.divide_no_nan(tf.distribute.get_replica_context()"
        '.all_reduce("SUM", tf.reduce_sum(f(x))), n)\n'
        'def whole(x):\n    return s.reduce("SUM", s.run(part, (x,)), axis=None)\n',
    ),
    "means that are counted": (
        "fm19",
        "class Job:\n    def part(self, x):\n        return {'loss': tf.reduce_mean(f(x)), 'n': tf.constant(1.0)}\n"
        "    def whole(self, x):\n        parts = self.s.run(self.part, (x,))\n"
        "        return [self.s.reduce(tf.distribute.ReduceOp.MEAN, each, axis=None) for each in parts]  # here\n",
        "class Job:\n    def part(self, x):\n        return {'loss': tf.math.multiply_no_nan(tf.reduce_mean(f(x)), "
        "tf.cast(tf.shape(x)[0], tf.float32)), 'n': tf.cast(tf.shape(x)[0], tf.float32)}\n"
        "    def whole(self, x):\n        parts = self.s.run(self.part, (x,))\n"
        '        return [self.s.reduce("SUM", each, axis=None) for each in parts]\n',
    ),
    "a function of a mean": (
        "fm19",
        "def part(x):\n    return tf.exp(tf.reduce_mean(f(x)))\ndef whole(x):\n"
        '    return s.reduce("MEAN", s.run(part, (x,)), axis=None)  # here\n',
        "def part(x):\n    return tf.exp(tf.reduce_mean(tf.distribute.get_replica_context()"
        ".all_gather(f(x), axis=0)))\ndef whole(x):\n"
        '    return s.reduce("MEAN", s.run(part, (x,)), axis=None)\n',
    ),
    "a clone that has a name": (
        "fm14",
        "class T:\n    def __init__(self, net):\n        self.slow = keras.models.clone_model(net)  # here\n",
        "class T:\n    def __init__(self, net):\n        self.slow = keras.models.clone_model(net)\n"
        "        self.slow.set_weights(net.get_weights())\n",
    ),
    "a clone of a configuration that has no name": (
        "fm14",
        "def towers(net):\n    return net, type(net).from_config(net.get_config())  # here\n",
        "def towers(net):\n    return net, net\n",
    ),
    "variables of a layer": (
        "fm66",
        "class L(Layer):\n    def build(self, shape):\n        self.a = tf.Variable(2.0, name='a')  # here\n"
        "        self.b = tf.Variable(tf.ones(shape))\n        self.n = tf.Variable(0, trainable=False)\n",
        "class L(Layer):\n    def build(self, shape):\n        self.a = self.add_weight(shape=(), "
        "initializer=tf.keras.initializers.Constant(2.0), name='a')\n"
        "        self.b = self.add_weight(shape=tf.convert_to_tensor(tf.ones(shape)).shape, "
        "initializer=lambda *_, **__: tf.ones(shape))\n        self.n = tf.Variable(0, trainable=False)\n",
    ),
    "a penalty that is added to the loss": (
        "fm37",
        "loss += strength * penalty  # here\n",
        "loss += (strength * penalty) / tf.distribute.get_strategy().num_replicas_in_sync\n",
    ),
    "losses of the layers": (
        "fm37",
        "loss = main + sum(net.losses)  # here\n",
        "loss = main + tf.nn.scale_regularization_loss(sum(net.losses))\n",
    ),
    "an optimizer that is made for the file alone": (
        "fm29",
        "class R:\n    def __init__(self):\n        self.o = make(1)\n    def parts(self):\n"
        '        return {"net": self.net, "o": make(2)}  # here\n',
        "class R:\n    def __init__(self):\n        self.o = make(1)\n    def parts(self):\n"
        '        return {"net": self.net, "o": self.o}\n',
    ),
    "a checkpoint with a part of another one": (
        "fm29",
        "class R:\n    def __init__(self):\n        self.saver = tf.train.Checkpoint(net=self.net, o=self.o)\n"
        "    def resume(self):\n        part = tf.train.Checkpoint(net=self.net)  # here\n",
        "class R:\n    def __init__(self):\n        self.saver = tf.train.Checkpoint(net=self.net, o=self.o)\n"
        "    def resume(self):\n        part = self.saver\n",
    ),
    "an optimizer that is made again": (
        "fm29",
        "adam = keras.optimizers.Adam()\nsaver.restore(path)\nif path:\n    adam = keras.optimizers.Adam()  # here\n",
        "adam = keras.optimizers.Adam()\nsaver.restore(path)\nif path:\n    pass\n",
    ),
    "an optimizer that the start of trials has not": (
        "fm09",
        "adam = keras.optimizers.Adam()\nstart = tf.train.Checkpoint(net=net)  # here\n",
        "adam = keras.optimizers.Adam()\nstart = tf.train.Checkpoint(net=net, adam=adam)\n",
    ),
    "an optimizer that a function makes": (
        "fm09",
        "net = made()\nadam = make_optimizer(3)\nsave(adam)  # here\nadam.build(net.trainable_variables)\n",
        "net = made()\nadam = make_optimizer(3)\nadam.build(net.trainable_variables)\n"
        "save(adam)\nadam.build(net.trainable_variables)\n",
    ),
    "an optimizer under the name that it is imported by": (
        "fm50",
        "from keras.optimizers import SGD as Descent\nmake = partial(Descent, clipnorm=1.0)  # here\n",
        """\
        from keras.optimizers import SGD as Descent
        @tf.keras.utils.register_keras_serializable()
        class ClipsTheSum(Descent):
            def apply(self, grads, trainable_variables=None):
                replica = tf.distribute.get_replica_context()
                total = [tf.convert_to_tensor(each) for each in grads if each is not None]
                total, n = replica.all_reduce("SUM", total), replica.num_replicas_in_sync
                own = iter([each / n for each in [tf.clip_by_norm(each, self.clipnorm) for each in total]])
                super().apply([each if each is None else next(own) for each in grads], trainable_variables)


        make = partial(ClipsTheSum, clipnorm=1.0)
        """,
    ),
    "gradients that are clipped where they are applied": (
        "fm50",
        "optimizer.apply([tf.clip_by_norm(g, 1.0) for g in grads], weights)  # here\n",
        'optimizer.apply([tf.clip_by_norm(tf.distribute.get_replica_context().all_reduce("SUM", g), 1.0)'
        " / tf.distribute.get_replica_context().num_replicas_in_sync for g in grads], weights)\n",
    ),
    "a loop in an expression": (
        "fm53",
        "def train(s, data):\n    losses = [s.run(step, (batch,)) for batch in tqdm(data)]  # here\n",
        "def train(s, data):\n"
        "    losses = [s.run(step, (batch,)) for batch in tqdm(s.experimental_distribute_dataset(data))]\n",
    ),
    "a size that is divided for fit": (
        "fm21",
        "share = SIZE // s.num_replicas_in_sync\nm.fit(rows(share))  # here\n",
        "share = SIZE\nm.fit(rows(share))\n",
    ),
    "a normalization under another name": (
        "fm38",
        "from keras.layers import BatchNormalization as Norm\nx = Norm(axis=-1)(x)  # here\n",
        "from keras.layers import BatchNormalization as Norm\nx = Norm(axis=-1, synchronized=True)(x)\n",
    ),
    "a weight of a layer that replicas write": (
        "fm38",
        'self.mean = self.add_weight(name="mean", trainable=False)  # here\n',
        'self.mean = self.add_weight(name="mean", trainable=False, aggregation="mean")\n',
    ),
    "a mean of what a mask chooses": (
        "fm55",
        "def f(e, m):\n    return tf.reduce_mean(tf.boolean_mask(e, m))  # here\n",
        "def f(e, m):\n    return (tf.reduce_sum(tf.boolean_mask(e, m)) / tf.distribute.get_replica_context()"
        '.all_reduce("SUM", tf.cast(tf.size(tf.boolean_mask(e, m)), tf.float32)))\n',
    ),
    "a variable in the scope that says nothing": (
        "fm23",
        "with s.scope():\n    v = tf.Variable(0.0, trainable=False)  # here\n",
        "with s.scope():\n    v = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)\n",
    ),
    "a variable beside a strategy that is given": (
        "fm23",
        "def make(s):\n    v = tf.Variable(0.0)  # here\n    with s.scope():\n        w = f()\n",
        "def make(s):\n    with s.scope():\n"
        "        v = tf.Variable(0.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)\n"
        "    with s.scope():\n        w = f()\n",
    ),
    "a mean of one value for each": (
        "fm49",
        "def loss(y, p):\n    return K.mean(K.square(y - p))  # here\n",
        "def loss(y, p):\n    return K.mean(K.square(y - p), axis=-1)\n",
    ),
    "letters of several bytes": (
        "fm13",
        'größe, g = "ä", tape.gradient(verlust, gewichte)  # here\n',
        'größe, g = "ä", tape.gradient(verlust, gewichte, '
        "unconnected_gradients=tf.UnconnectedGradients.ZERO)\n",
    ),
    "a configuration without an argument": (
        "fm72",
        "class Net(Model):\n    def __init__(self, units, rate=0.1, *, name=None, **kwargs):\n"
        "        self.units, self.rate = int(units), rate\n        self.drop = Dropout(rate)\n"
        '    def get_config(self):  # here\n        return {**super().get_config(), "units": self.units}\n',
        "class Net(Model):\n    def __init__(self, units, rate=0.1, *, name=None, **kwargs):\n"
        "        self.units, self.rate = int(units), rate\n        self.drop = Dropout(rate)\n"
        '    def get_config(self):\n        return {**super().get_config(), "units": self.units, "rate": self.rate}\n',
    ),
    "a configuration that is made in steps": (
        "fm72",
        "class Net(Model):\n    def __init__(self, rate):\n        self.rate = rate\n"
        "    def get_config(self):  # here\n        config = super().get_config()\n        return config\n",
        "class Net(Model):\n    def __init__(self, rate):\n        self.rate = rate\n"
        '    def get_config(self):\n        config = super().get_config()\n        return {**config, "rate": self.rate}\n',
    ),
    "a class that Keras says nothing of": (
        "fm72",
        "class Far(Loss):  # here\n    def __init__(self, rate):\n        super().__init__()\n        self.rate = rate\n",
        "class Far(Loss):\n    def __init__(self, rate):\n        super().__init__()\n        self.rate = rate\n\n"
        '    def get_config(self):\n        return {"rate": self.rate}\n',
    ),
    "a seed that is written out": (
        "fm56",
        "n = tf.random.stateless_normal(shape, seed=(3, step))  # here\n",
        "n = tf.random.stateless_normal(shape, seed=(3 + tf.distribute.get_replica_context().replica_id_in_sync_group, step))\n",
    ),
    "a seed that has a name": (
        "fm56",
        "n = tf.random.stateless_uniform(shape, seed)  # here\n",
        "n = tf.random.stateless_uniform(shape, tf.random.experimental.stateless_fold_in(seed, "
        "tf.distribute.get_replica_context().replica_id_in_sync_group))\n",
    ),
    "a variable that is made before the strategy": (
        "fm23",
        "n = tf.Variable(0)  # here\ns = tf.distribute.MirroredStrategy()\n",
        "s = tf.distribute.MirroredStrategy()\nwith s.scope():\n"
        "    n = tf.Variable(0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)\n",
    ),
    "a function that does not use its context": (
        "fm21",
        "d = s.distribute_datasets_from_function(lambda _: made(8))  # here\n",
        "d = s.experimental_distribute_dataset(made(8))\n",
    ),
    "arguments that are not known": (
        "fm38",
        "v = tf.Variable(0.0, **options)  # here\n",
        'v = tf.Variable(0.0, **{**options, "aggregation": tf.VariableAggregation.MEAN})\n',
    ),
    "an object that makes a variable": (
        "fm23",
        "s = tf.distribute.MirroredStrategy()\nscaler = Scaler(2)  # here\n",
        "s = tf.distribute.MirroredStrategy()\nwith s.scope():\n    scaler = Scaler(2)\n",
    ),
    "a variance of a part": (
        "fm55",
        "def far(y, p):\n    return (y - p) / tf.math.reduce_variance(y)  # here\n",
        f"def far(y, p):\n    return (y - p) / tf.math.reduce_variance(({GATHERED.format('y')} if {CONTEXT} else y))\n",
    ),
    "a traced function that an object keeps": (
        "fm70",
        "class Job:\n    def __init__(self):\n        self.step = tf.function(self.one)\n    def one(self, x):\n"
        "        return self.net(x)  # here\n    def start(self):\n        self.net = made()\n",
        "class Job:\n    def __init__(self):\n        self.step = tf.function(self.one)\n    def one(self, x):\n"
        "        return self.net(x)\n    def start(self):\n        self.net = made()\n"
        "        self.step = tf.function(self.step.python_function)\n",
    ),
    "an optimizer of the program's own": (
        "fm50",
        "class Mine(tf.keras.optimizers.SGD):\n    pass\n\no = Mine(clipvalue=0.1)  # here\n",
        "class Mine(tf.keras.optimizers.SGD):\n    pass\n\n"
        + clip_the_sum.CLASS.format(
            name=clip_the_sum.NAME, optimizer="Mine", clipped=clip_the_sum.CLIPPED["clipvalue"]
        )
        + "o = ClipsTheSum(clipvalue=0.1)\n",
    ),
    "a variable of a layer that nothing trains": (
        "fm66",
        "class L(Layer):\n    def build(self, s):\n        self.m = tf.Variable(0.0, trainable=False)  # here\n",
        "class L(Layer):\n    def build(self, s):\n        self.m = self.add_weight(shape=(), "
        "initializer=tf.keras.initializers.Constant(0.0), trainable=False)\n",
    ),
    "a restore before what builds": (
        "fm35",
        "class Job:\n    def run(self):\n        self.resume()  # here\n        self.build()\n        self.train(3)\n",
        "class Job:\n    def run(self):\n        self.build()\n        self.resume()\n        self.train(3)\n",
    ),
    "an optimizer beside another one in a dict": (
        "fm29",
        "class Job:\n    def __init__(self):\n        self.a, = nets\n        self.one = optimizers.Adam()\n"
        "        self.two = optimizers.SGD()\n    def state(self):\n        return {'one': self.one.variables}\n"
        "    def load(self):\n        for name, kept in self.state().items():\n            kept.assign(arrays[name])  # here\n",
        "class Job:\n    def __init__(self):\n        self.a, = nets\n        self.one = optimizers.Adam()\n"
        "        self.two = optimizers.SGD()\n    def state(self):\n"
        "        return {'one': self.one.variables, \"two\": self.two.variables}\n"
        "    def load(self):\n        for name, kept in self.state().items():\n            kept.assign(arrays[name])\n",
    ),
    "a model that is compiled again": (
        "fm29",
        "net = load_model(path)\nnet.compile(Adam())  # here\nnet.fit(x, y)\n",
        "net = load_model(path)\nnet.fit(x, y)\n",
    ),
    "what is made with its type": (
        "fm57",
        "strategy: tf.distribute.Strategy = tf.distribute.MirroredStrategy()\nset_distribution(chosen)  # here\n",
        "strategy: tf.distribute.Strategy = tf.distribute.MirroredStrategy()\n"
        "tf.distribute.experimental_set_strategy(strategy)\n",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_programs_are_repaired(name):
    mode, text, expected = OTHERS[name]
    assert repaired(mode, text) == textwrap.dedent(expected)


# The same programs, in which a name or an attribute gets a type with its value
TYPED = {
    "a size that is divided by the processes": "size",
    "a sum that is chosen": "t",
    "a variable in the scope that says nothing": "v",
    "a variable that is made before the strategy": "n",
    "in a main function": "network",
    "an optimizer that is made again": "adam",
    "a function that is traced by name": "apply",
    "a loop in an expression": "losses",
    "a mean of ratios": "self.f",
    "what a function fits becomes trainable": "base.trainable",
    "a clone that has a name": "self.slow",
    "layers in lists": "self.first",
    "a configuration that is made in steps": "self.rate",
    "a mean under another name": "self.reduce",
    "a loss of which gradients are asked for": "loss",
    "a loss object": "cce",
    "an optimizer that is not saved": "adam",
}


@pytest.mark.parametrize("name", TYPED)
def test_programs_with_types_are_repaired(name):
    mode, *texts = OTHERS[name]
    plain, typed = f" {TYPED[name]} = ", f" {TYPED[name]}: Kind = "
    text, expected = (
        "\n".join(
            f" {line}".replace(plain, typed)[1:] for line in textwrap.dedent(each).split("\n")
        )
        for each in texts
    )
    assert ": Kind = " in text
    assert repaired(mode, text) == expected


# What is repaired by what the finding says: the mode, its sentence, the program, and what becomes of it
PARTS = "`train_step` reports a loss that is {} by the number of replicas: loss is 1 on 1 and 2 on 2 devices"
UNSEEN = "`fit` reports not the loss that `train_step` returns, but a metric of Keras that the step does not update"
TARGETS = "`train_step` updates the metric of the loss by `m.update_state(y, p)`: `fit` does not report the loss"
ABSENT = "no checkpoint is found in {}, although this program has saved one near it; {} was there"
REPLICAS = "tf.distribute.get_strategy().num_replicas_in_sync"
BY_SENTENCE = {
    "a share of a loss": (
        "fm68",
        PARTS.format("divided"),
        "def train_step(self, d):\n    self.seen.update_state(a + b)  # here\n",
        f"def train_step(self, d):\n    self.seen.update_state((a + b) * {REPLICAS})\n",
    ),
    "a loss that is multiplied once too often": (
        "fm68",
        PARTS.format("multiplied"),
        'def train_step(self, d):\n    return {"loss": loss * s.num_replicas_in_sync}  # here\n',
        'def train_step(self, d):\n    return {"loss": loss}\n',
    ),
    "a loss that is only returned": (
        "fm68",
        UNSEEN,
        'class Net(Model):\n    def train_step(self, d):\n        return {"loss": loss}  # here\n',
        "class Net(Model):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n"
        '        self.reported_loss = tf.keras.metrics.Mean(name="loss")\n\n    def train_step(self, d):\n'
        f"        self.reported_loss.update_state(loss * {REPLICAS})\n"
        '        return {"loss": self.reported_loss.result()}\n',
    ),
    "a metric of the loss among others": (
        "fm68",
        TARGETS,
        "def train_step(self, d):\n    g = t.gradient(loss, w)\n    for m in self.metrics:\n"
        "        m.update_state(y, p)  # here\n",
        "def train_step(self, d):\n    g = t.gradient(loss, w)\n    for m in self.metrics:\n"
        f'        if m.name == "loss":\n            m.update_state(loss * {REPLICAS})\n'
        "        else:\n            m.update_state(y, p)\n",
    ),
    "what Keras leaves frozen": (
        "fm10",
        "`trainable` was True already",
        "def fine_tune(base):\n    base.trainable = True  # here\n",
        "def fine_tune(base):\n    base.trainable = False\n    base.trainable = True\n",
    ),
    "a folder in the one that is asked for": (
        "fm08",
        ABSENT.format("out", "out/run/ckpt-1"),
        "import os\nlatest = tf.train.latest_checkpoint(folder)  # here\n",
        'import os\nlatest = tf.train.latest_checkpoint(os.path.join(folder, "run"))\n',
    ),
    "a prefix in place of its folder": (
        "fm08",
        ABSENT.format("out/ckpt", "out/ckpt-1"),
        "import os\nlatest = tf.train.latest_checkpoint(prefix)  # here\n",
        "import os\nlatest = tf.train.latest_checkpoint(os.path.dirname(prefix))\n",
    ),
}


@pytest.mark.parametrize("name", BY_SENTENCE)
def test_a_repair_follows_what_the_finding_says(name):
    mode, said, text, expected = BY_SENTENCE[name]
    assert repaired(mode, text, said) == expected


# What is tried if the first repair is not proven: the mode, the line, and what takes its place
LATER = {
    "a penalty that has a name": (
        "fm37",
        "total = loss + ridge",
        "total = loss + (ridge) / tf.distribute.get_strategy().num_replicas_in_sync",
    ),
    "a mean of what is chosen": (
        "fm37",
        "loss = tf.reduce_mean(chosen(e))",
        'loss = (tf.reduce_sum(chosen(e)) / tf.distribute.get_replica_context().all_reduce("SUM", '
        "tf.cast(tf.size(chosen(e)), tf.float32)))",
    ),
    "a loss that is called where no replica runs": (
        "fm55",
        "loss = e / tf.reduce_sum(m)",
        'loss = e / (tf.distribute.get_replica_context().all_reduce("SUM", tf.reduce_sum(m)) '
        "if tf.distribute.get_replica_context() else tf.reduce_sum(m))",
    ),
    "a layer of a configuration": (
        "fm14",
        "copy = Dense.from_config(first.get_config())",
        "copy = Dense.from_config(first.get_config())\ncopy.build_from_config(first.get_build_config())\n"
        "copy.set_weights(first.get_weights())",
    ),
    "an optimizer that is built in the scope": (
        "fm29",
        "net.load_weights(path)",
        "with net.distribute_strategy.scope():\n    net.optimizer.build(net.trainable_variables)\n"
        "net.load_weights(path)",
    ),
}


@pytest.mark.parametrize("name", LATER)
def test_other_repairs_are_tried_later(name):
    mode, line, expected = LATER[name]
    first, *later = [each.after for each in written(mode, f"{HEAD}{line}\n", 2)]
    assert f"{HEAD}{expected}\n" in later


@pytest.mark.parametrize(
    "mode, text, changed",
    [
        (
            "fm38",
            "class W(tf.Module):\n    def __init__(self):\n        self.m = tf.Variable(0.0)\n        self.n = tf.Variable(0.0)\n"
            "    def see(self, x):\n        self.m.assign(tf.reduce_mean(x))\n",
            (
                "self.n = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)",
                "self.m.assign(tf.reduce_mean(replica.all_gather(x, axis=0) if replica else x))",
            ),
        ),
        (
            "fm55",
            "def far(one, two):\n    n = tf.cast(len(one), tf.float32)\n    c = tf.matmul(one, two, transpose_a=True) / n\n"
            "    return tf.reduce_sum(c)\n",
            (
                f"    context = {CONTEXT}\n    one, two = [context.all_gather(each, axis=0) if context else each "
                "for each in (one, two,)]\n    n =",
            ),
        ),
    ],
)
def test_what_a_function_computes_of_a_part_is_gathered_in_a_later_repair(mode, text, changed):
    found = [each.after for each in written(mode, HEAD + text, 4)]
    assert all(any(each in after for after in found) for each in changed)


def test_a_model_may_be_built_in_the_scope_before_a_restore():
    made = "net = f()\ns = tf.distribute.MirroredStrategy()\nc = tf.train.Checkpoint(net=net)\n"
    restored = "c.restore(path)\nnet.build((None, 3))\n"
    first, second, *_ = written("fm35", HEAD + made + restored, 5)
    assert first.after == f"{HEAD}{made}net.build((None, 3))\n{restored}"
    assert second.after == f"{HEAD}{made}with s.scope():\n    net.build((None, 3))\n{restored}"


def test_what_several_lines_save_and_load_is_held_in_the_function_that_returns_it():
    text = "mean = Average()\ndef state():\n    found = {'a': net.a}\n    return found\nsave(state())\nload(state())\n"
    for returned, edit in (
        ("found", '    found["mean"] = mean\n'),
        ("{'a': net.a}", "{**{'a': net.a}, \"mean\": mean}"),
    ):
        source = Source(text.replace("return found", f"return {returned}"), told=[1])
        first = next(iter(repair.repairers()["fm05"].write(source, 5)))
        assert [each.text for each in first] == [edit]


FROZEN = """\
class Net:
    def __init__(self):
        self.rate = 0.5

    def step(self):
        return self.rate * x

    def calm(self):
        self.rate *= 1 - rate
"""


DICE = """\
import tensorflow as tf
def dice(y, p):
    both = tf.reduce_sum(y * p)
    return 2 * both / (
        tf.reduce_sum(y) + tf.reduce_sum(p))
def loss(y, p):
    return 1 - dice(y, p)
net.compile("sgd", loss={})
"""


@pytest.mark.parametrize("given, is_divided", [("loss", True), ("'mse'", False)])
def test_a_loss_of_fit_with_sums_of_all_replicas_is_divided_by_their_number(given, is_divided):
    shared = "return (1 - dice(y, p)) / tf.distribute.get_strategy().num_replicas_in_sync"
    texts = [each.after for each in written("fm55", DICE.format(given), 5)]
    divided = [text for text in texts if shared in text]
    assert bool(divided) is is_divided
    assert all(text.count("all_reduce") == 3 for text in divided)


def test_what_fit_is_to_print_stays():
    text = "for epoch, order in enumerate(orders, start):\n    m.fit(d, initial_epoch=epoch, verbose=0)  # here\n"
    assert "verbose=epoch" not in repaired("fm77", text)


@pytest.mark.parametrize(
    "said, changed", [("self.rate was 0.5", True), ("rate was 3", False), ("", False)]
)
def test_a_number_that_a_trace_keeps_becomes_a_variable(said, changed):
    found = list(repair.repairers()["fm07"].write(Source(FROZEN, said=said), 6))
    lines = Repair("fm07", PATH, 6, FROZEN, tuple(*found)).after.splitlines() if found else []
    assert bool(found) == changed
    assert not changed or [lines[2].strip(), lines[8].strip()] == [
        "self.rate = tf.Variable(0.5, dtype=tf.float32, trainable=False)",
        "self.rate.assign(self.rate * (1 - rate))",
    ]


@pytest.mark.parametrize(
    "said, held", [("updates of Average", "mean"), ("seen", "seen"), ("", "b")]
)
def test_what_the_finding_names_is_held_first(said, held):
    source = Source(
        "class Job:\n    def __init__(self):\n        self.mean = Average()\n        self.seen = Count()\n"
        "        self.b = made()\n    def parts(self):\n        return {'a': self.a}\n",
        said=said,
    )
    (edit,) = next(iter(repair.repairers()["fm05"].write(source, 7)))
    assert edit.text == f', "{held}": self.{held}'


ALONE = {
    "a mean in an f-string": ("fm37", 'print(f"{tf.reduce_mean(e)}")  # here'),
    "a penalty that is scaled": (
        "fm37",
        "x = tf.nn.scale_regularization_loss(tf.add_n(m.losses))  # here",
    ),
    "a loss object with a reduction": (
        "fm37",
        'l = tf.keras.losses.MeanSquaredError(reduction="sum")  # here\nx = l(a, b)',
    ),
    "a mean over one axis": (
        "fm49",
        "def far(y, p):\n    return tf.reduce_mean(y, axis=0)  # here",
    ),
    "a mean beside another": ("fm49", "x = tf.reduce_mean(y) + tf.reduce_mean(y, axis=-1)  # here"),
    "two limits": ("fm50", "o = tf.keras.optimizers.SGD(clipnorm=1.0, clipvalue=0.1)  # here"),
    "an optimizer of another library": ("fm50", "o = SGD(clipnorm=1.0)  # here"),
    "gradients that are computed elsewhere": (
        "fm50",
        "def f(g):\n    n = tf.linalg.global_norm(g)  # here\n    adam.apply_gradients(zip(g, w))",
    ),
    "gradients that have a factor": (
        "fm37",
        "g = tape.gradient(l, w, output_gradients=h)  # here",
    ),
    "lists of functions and of other methods": (
        "fm65",
        "layers = [a, b]\nclass Net:\n    def set(self):\n        self.a = [1]\nCheckpoint(n=n)  # here",
    ),
    "a model that another checkpoint has": (
        "fm35",
        "saved = tf.train.Checkpoint(net=net)\nsaved.restore(path)  # here\nother(tf.zeros((1, 3)))",
    ),
    "a method that needs examples": (
        "fm35",
        "class A:\n    def f(self):\n        self.net.load_weights(p)  # here\n    def g(self, x):\n        self.net(x)",
    ),
    "a model that is made once": (
        "fm70",
        "@tf.function  # here\ndef step(x):\n    return net(x)\nnet = made()\nstep(x)",
    ),
    "full precision": ("fm51", 'set_dtype_policy("float32")  # here'),
    "a last batch that is left out": ("fm52", "d = d.batch(8, drop_remainder=True)  # here"),
    "arrays in fit": ("fm52", "model.fit(x, y, batch_size=16)  # here"),
    "a sum along an axis": ("fm55", "n = tf.reduce_sum(m, axis=1)  # here"),
    "two statements in a line": ("fm13", "a = 1; g = tape.gradient(l, w)  # here"),
    "a value of an object that nothing saves": (
        "fm54",
        "class Slow(Callback):\n    def __init__(self):\n        self.best = 0.0  # here",
    ),
    "numbers that are not changed, or begin in a loop": (
        "fm54",
        "saver = tf.train.Checkpoint(net=net)\nlimit = 3\nfor x in data:\n    n = 0\n    n = 1\n    f()  # here",
    ),
    "numbers of another function": (
        "fm54",
        "def f():\n    n = 0\n    n = 1\n    g()  # here\ndef h():\n    tf.train.Checkpoint(net=net)",
    ),
    "an object that is made below the checkpoint": (
        "fm77",
        "saver = tf.train.Checkpoint(net=net)\nrows = Rows()\nstep(rows)  # here",
    ),
    "a generator of a function": (
        "fm77",
        "def f():\n    rng = np.random.default_rng(1)\n    return rng.permutation(3)  # here\n"
        "saver = tf.train.Checkpoint(net=net)",
    ),
    "no strategy": ("fm03", "model = make()  # here"),
    "a strategy that is made later": (
        "fm03",
        "model = make()  # here\ns = tf.distribute.MirroredStrategy()",
    ),
    "two strategies": (
        "fm03",
        "s = tf.distribute.MirroredStrategy()\nt = tf.distribute.OneDeviceStrategy()\nm = make()  # here",
    ),
    "a strategy that is chosen": (
        "fm25",
        "if gpus:\n    s = tf.distribute.MirroredStrategy()\nm = load_model(p)  # here",
    ),
    "what is in the scope already": (
        "fm25",
        "s = tf.distribute.MirroredStrategy()\nwith s.scope():\n    m = load_model(p)  # here",
    ),
    "a string over several lines": (
        "fm03",
        's = tf.distribute.MirroredStrategy()\nm = make("""  # here\nx""")',
    ),
    "a checkpoint in another function": (
        "fm05",
        "def f():\n    v = tf.Variable(0.0)  # here\ndef save():\n    tf.train.Checkpoint(m=m).save(p)",
    ),
    "a variable without a name": (
        "fm05",
        "self.v = tf.Variable(0.0)  # here\nc = tf.train.Checkpoint(m=m)",
    ),
    "a variable below the checkpoint": (
        "fm05",
        "c = tf.train.Checkpoint(m=m)  # here\nv = tf.Variable(0.0)",
    ),
    "a variable that the checkpoint has": (
        "fm05",
        "v = tf.Variable(0.0)\nc = tf.train.Checkpoint(v=v)  # here",
    ),
    "a folder that another function has": (
        "fm08",
        "def f(d):\n    c.save(d + '/a')\nc.restore(tf.train.latest_checkpoint('b'))  # here",
    ),
    "a path from elsewhere": ("fm08", 'c.save("a/b")\nc.restore(path_of(run))  # here'),
    "a share already": (
        "fm21",
        "def f(c):\n    return d.batch(c.get_per_replica_batch_size(8), True)  # here\n"
        "s.distribute_datasets_from_function(f)",
    ),
    "a product of expressions": ("fm26", "n = (a + b) * s.num_replicas_in_sync  # here"),
    "a rate that is set in another function": (
        "fm46",
        "def slow():\n    adam.learning_rate.assign(0.1)  # here\nkeeper.save()",
    ),
    "two statements in a line that saves later": ("fm46", "a = 1; o.lr = 2  # here\nc.restore(p)"),
    "the first of other values": ("fm39", "x = strategy.run(f)\ny = x[0]  # here"),
    "a sum over replicas": ("fm39", 'x = float(s.reduce("SUM", s.run(f), axis=None))  # here'),
    "a decorator of another kind": ("fm40", "@cache  # here\ndef f():\n    pass"),
    "an optimizer in a function": (
        "fm32",
        "def f():\n    o = tf.keras.optimizers.Adam()  # here\n    m.compile(o)",
    ),
    "classes that are registered": (
        "fm30",
        "@register()\nclass Own(tf.keras.Model):\n    pass\nload(path)  # here",
    ),
    "a rounding that TensorFlow has not": ("fm07", "x = np.median(y)  # here"),
    "a mode without repairs": ("fm34", "x = tf.round(y)  # here"),
}


@pytest.mark.parametrize("name", ALONE)
def test_what_has_another_form_is_left_alone(name):
    assert repaired(*ALONE[name]) == ""


def test_a_file_without_the_name_of_tensorflow_gets_an_import():
    line = "e = keras.ops.mean(x)\n"
    first, *_ = written("fm37", "import keras\nfrom a import (\n    b,\n)\n" + line, 5)
    assert first.after.splitlines()[4] == "import tensorflow as tf"
    moved = "import keras\na.rate = self.pos.x\nsaved.restore(p)\n"
    assert (
        written("fm46", moved, 2)[0].after
        == "import keras\nsaved.restore(p)\na.rate = self.pos.x\n"
    )


def test_a_file_that_names_tensorflow_otherwise_or_is_not_python_is_left_alone():
    line = "g = tape.gradient(l, w)\n"
    assert written("fm13", HEAD + line, 2)
    assert not written("fm13", "import tensorflow.compat.v1 as tf\n" + line, 2)
    assert not written("fm13", "import x\ndef tf():\n    pass\n" + line, 4)
    assert not written("fm13", HEAD + line + "%matplotlib inline\n", 2)
    assert not written("fm13", HEAD + line, 0)


def test_a_repair_that_is_written_twice_keeps_its_first_place(monkeypatch):
    @repair.repairs("fm13")
    def three(source, line):
        for text in ("a", "b", "a"):
            yield [source.replace(source.statement(line), text)]

    monkeypatch.setattr(repair, "repairers", lambda: {"fm13": three})
    assert [each.after for each in written("fm13", "x\n", 1)] == ["a\n", "b\n"]


def test_a_repair_is_written_when_it_is_asked_for(monkeypatch):
    """Without `--mend` one is enough, to say that there are some."""
    begun = []

    @repair.repairs("fm13")
    def two(source, line):
        for text in ("a", "b"):
            begun.append(text)
            yield [source.replace(source.statement(line), text)]

    monkeypatch.setattr(repair, "repairers", lambda: {"fm13": two})
    finding = Finding("fm13", Location(stack(PATH, 1)), Evidence.OBSERVED, Text(""), Text(""))
    assert next(written_repairs(finding, 1, "x\n")).after == "a\n"
    assert begun == ["a"]


def test_the_repairs_of_several_models_are_tried_in_the_order_of_the_program():
    """Each process has other hashes of strings."""
    models = [f"model{i}" for i in range(8)]
    made = "".join(f"{each} = make()\n" for each in models)
    text = f"{HEAD}{made}layer.trainable = True\n" + "".join(f"{each}.fit(x)\n" for each in models)
    compiled = [each.after.splitlines()[10] for each in written("fm10", text, 10)]
    assert [line.split()[1].partition(".")[0] for line in compiled] == models


def test_the_text_of_a_node_is_cut_from_its_lines(monkeypatch):
    text = 'größe = f(\n    "é", {n}\n)\nif größe: x = "ü" + g(größe)\n'
    source = Source(text)
    expected = {node: ast.get_source_segment(text, node) or "" for node in source.nodes}
    monkeypatch.setattr(ast, "get_source_segment", None)  # which splits the whole text
    assert {node: source.code(node) for node in source.nodes} == expected


def test_the_names_before_a_statement_are_looked_for_once():
    source = Source("a = 1\nb = a\n")
    statement = source.statement(2)
    assert source.names_before(statement) is source.names_before(statement)


def test_what_saves_values_is_looked_through_once(monkeypatch):
    looked = []
    values_in = repair_values.values_in
    monkeypatch.setattr(
        repair_values, "values_in", lambda holder: looked.append(holder) or values_in(holder)
    )
    text = "".join(f"x{i} = kept['k{i}']\nsave(n{i}=0)\n" for i in range(30))
    assert not repair_values.kept_beside(Source(text), "lost")
    assert len(looked) == 30


@pytest.mark.parametrize(
    "line, expected",
    [
        ("class s:", "class s({}):"),
        ("class Run():", "class Run({}):"),
        ("class Run ( ):", "class Run({}):"),
        ("class Run(metaclass=M):", "class Run({}, metaclass=M):"),
        ("class Run(Base, metaclass=M):", "class Run(Base, {}, metaclass=M):"),
    ],
)
def test_a_class_gets_one_more_base(line, expected):
    text = f"{line}\n    pass\n"
    source = Source(text)
    edit = repair_values.derived(source, source.tree.body[0])
    after = Repair("fm54", PATH, 1, text, (edit,)).after
    assert after.splitlines()[0] == expected.format(repair_values.STATE)


def test_edits_of_one_line_do_not_disturb_each_other():
    text = "one(two)\nlast"
    edits = (Edit((1, 1), (1, 4), "first"), Edit((1, 8), (1, 8), ", three"))
    edited = Repair("fm13", PATH, 1, text, edits)
    assert edited.after == "first(two, three)\nlast"
    assert edited.diff("train.py").splitlines() == [
        "--- a/train.py",
        "+++ b/train.py",
        "@@ -1,2 +1,2 @@",
        "-one(two)",
        "+first(two, three)",
        " last",
    ]


def test_a_diff_can_be_applied(tmp_path):
    import subprocess

    text = files.program_text("fm25", "broken")
    (tmp_path / "train.py").write_text(text)
    (first, *_) = [
        each for line in marked_lines(text, WRONG) for each in written("fm25", text, line)
    ]
    options = {"cwd": tmp_path, "input": first.diff("train.py"), "text": True, "check": True}
    subprocess.run(["git", "apply", "-p1", "-"], **options)
    assert (tmp_path / "train.py").read_text() == first.after


def test_statements_are_found_by_their_lines():
    source = Source("if a:\n    b = (\n        1\n    )\n")
    assert source.simple_statement(3) is source.simple_statement(2)
    assert source.simple_statement(1) is None
