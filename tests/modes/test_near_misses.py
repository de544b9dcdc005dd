"""Near misses of every rule: exceptions, recordings and programs that look like a mode and are not. Nothing is said of them."""

import math
from collections import Counter
from dataclasses import dataclass, replace

import pytest
from divergent_programs import FIT, LOOP, layers, optimizer
from edited_programs import edited, examined
from recorded import (
    LINE,
    MINE,
    OTHER,
    ended,
    loaded,
    modes,
    omitted,
    run,
    saved,
    state,
    strategy,
    trained,
    updated,
    variable,
    written,
)
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import modules_of_modes
from strategy_clinic.observer.events import (
    BatchTaken,
    CallbackState,
    ChangedSetting,
    CheckpointRestored,
    ClusterDescribed,
    ClusterStrategyRequested,
    DataRanOut,
    DatasetBatched,
    DatasetFromFunction,
    DivergedCopies,
    EpochsLeftOut,
    ExamplesTaken,
    ExceptionRaised,
    FitOverran,
    FunctionRetraced,
    GeneratorRead,
    GradientComputed,
    InputShared,
    KerasDistributionSet,
    LearningRateRestored,
    Loaded,
    LoadedOtherwise,
    MeanReduced,
    Metric,
    MetricsReported,
    ModelCalled,
    ModelCompiled,
    ModelSettings,
    NumbersRepeated,
    Outcome,
    Owner,
    Part,
    PartUsed,
    ReplicaCountRead,
    RestoredBeforeBuild,
    RetraceCause,
    RunEager,
    Setting,
    StepsCounted,
    UnbuiltModelRead,
    VariableRead,
    VariableSharedCentrally,
    WeightsCopied,
)

# Exceptions

FACTOR = Setting("Scaled", "factor", "3.0", LINE[0])
MESSAGES = [
    ("fm01", "NotImplementedError: Sampler.numpy() is only available when the table is loaded"),
    ("fm01", "AttributeError: 'list' object has no attribute 'numpy'"),
    ("fm03", "ValueError: Layer dense expects 1 input, and the strategy of this agent has 2"),
    ("fm03", "RuntimeError: Need to be inside a transaction scope"),
    ("fm04", "ValueError: The filename must end in `.csv`. Received: filepath=weights"),
    ("fm04", "FileNotFoundError: [Errno 2] No such file or directory: 'model.weights.txt'"),
    ("fm06", "ValueError: Shapes (None, 1) and (None, 10) are incompatible"),
    ("fm06", "ValueError: operands could not be broadcast together with shapes (3,) (4,)"),
    ("fm07", "TypeError: using a `Tensor` as a key is not allowed in this cache"),
    ("fm07", "ValueError: the truth value of an array with more than one element is ambiguous"),
    ("fm10", "KeyError: 'optimizer'"),
    ("fm10", "ValueError: Unknown variable: PATH is not set"),
    ("fm12", "ValueError: this database supports singleton rows only"),
    ("fm12", "ValueError: tf.function only accepts a callable, and was given 3"),
    ("fm13", "TypeError: unsupported operand type(s) for *: 'NoneType' and 'float'"),
    ("fm13", "ValueError: No variables were selected for the report"),
    ("fm15", "RuntimeError: merge was called while another merge is running"),
    ("fm15", "ValueError: You must specify an aggregation for the column `price`"),
    ("fm17", "RuntimeError: Please provide a name to connect to"),
    ("fm17", "RuntimeError: The system was not initialized: call `setup` first"),
    ("fm18", "ValueError: the product of the dimensions should be the same as the number of seats"),
    ("fm18", "ValueError: Computation shape of the report must have 4 entries"),
    ("fm20", "ValueError: start must not be larger than limit: 1/0"),
    ("fm20", "ValueError: axis 2 is out of bounds for array of dimension 1"),
    ("fm21", "TypeError: Feed.make() takes 1 positional argument but 2 were given"),
    ("fm22", "TypeError: Could not build a wheel for Score"),
    ("fm22", "TypeError: step() argument after * must be an iterable, not int"),
    ("fm24", "InvalidArgumentError: Detected unsupported operations in the formula of this cell"),
    ("fm24", "RuntimeError: this parser was compiled without XLA"),
    ("fm31", "AttributeError: 'NoneType' object has no attribute 'merge'"),
    ("fm31", "AttributeError: 'NoneType' object has no attribute 'extended'"),
    ("fm32", "ValueError: You must feed a value for the field 'name'"),
    ("fm32", "ValueError: Slots of this calendar were created in another month"),
    ("fm33", "NameError: name 'loss' is out of scope and cannot be used in this template"),
    ("fm33", "RuntimeError: the tensor of inertia cannot be accessed from here"),
    ("fm34", "ValueError: No labels provided for any example"),
    ("fm34", "ValueError: No gradient colours were given for the axis"),
    ("fm36", "InternalError: Device GPU:1 is joining nothing: out of memory"),
    ("fm36", "InternalError: the group of this user has another size"),
    ("fm39", "AttributeError: 'Replica' object has no attribute 'numpy'"),
    ("fm39", "TypeError: float() argument must be a string or a real number, not 'PerUser'"),
    ("fm40", "RuntimeError: a nested function was called while defining a new class"),
    ("fm40", "RuntimeError: merge_sorted called while the list was being changed"),
    ("fm42", "RuntimeError: Your input queue ran out of space; interrupting the reader"),
    ("fm42", "StopIteration: the iterator of the sampler has ended"),
]


@pytest.mark.parametrize("mode, message", MESSAGES)
def test_an_exception_that_is_of_no_mode(mode, message):
    kind = message.partition(":")[0]
    trace = f'Traceback (most recent call last):\n  File "train.py", line 7, in main\n{message}'
    assert modes(run(ExceptionRaised(LINE, kind, trace, ()), outcome=Outcome.RAISED)) == []


@pytest.mark.parametrize("name", ["merge_call", "all_reduce"])
def test_a_replica_context_that_is_none(name):
    message = f"AttributeError: 'NoneType' object has no attribute '{name}'"
    raised = ExceptionRaised(LINE, "AttributeError", message, ())
    assert modes(run(raised, outcome=Outcome.RAISED)) == [("fm31", 7)]


# Recordings

MIRRORED = variable(1, copies=2, parts=(10, 11))
RESTARTED = run(saved(made_at=OTHER), role=Role.STOPPED)
OUTSIDE = loaded(in_scope=False)
COPIED = WeightsCopied(LINE, "set_weights", (1,), (2,), True)
TIMED_OUT = ExceptionRaised(
    LINE, "DeadlineExceededError", "Collective has timed out during execution.", ()
)
WHOLE = loaded(variables=(2, *state().variables))
DRAWN_ONCE = NumbersRepeated(LINE, Owner.USER, (), 2)
CALLED_BY_PARTS = ModelCalled(OTHER, 8, 2, (1,))
SLOTS = [variable(1), variable(4, maker=Owner.OPTIMIZER)]


def restored(path="ck-1", optimizers=(), unmatched=""):
    return CheckpointRestored(LINE, path, OTHER, (1, 2, 4), optimizers, unmatched)


def reported(error):
    return MetricsReported(OTHER, (Metric("loss", 1.0), Metric("error", error)), LINE)


def fed(replicas, size, *events):
    batch = BatchTaken(LINE, (size,) * replicas)
    return run(strategy(replicas), DatasetFromFunction(LINE), batch, *events, devices=replicas)


def forgets(best, begins=False):
    return CallbackState(OTHER, "ModelCheckpoint", begins, best, 0, "best.keras", 0, "loss")


def restarted(begins, *checksums):
    """A program that was stopped after four of eight updates, and goes on with these examples."""
    whole, taken = (
        run(saved(path="ck"), updated(), ExamplesTaken(LINE, False, first, len(each), each))
        for first, each in ((0, (1, 2, 3, 4, 5, 6, 7, 8)), (begins, checksums))
    )
    again = {"role": Role.RESTARTED, "whole": whole, "before": run(saved(path="ck"))}
    return replace(taken, events=(loaded(path="ck"), *taken.events), **again)


def near(mode, words, *recordings):
    return pytest.param(mode, recordings, id=f"{mode} {words}")


BY_COUNT = {"learning_rate": "Cosine", "variables": (4, 5)}
FEWER = ReplicaCountRead(LINE), BatchTaken(LINE, (8,)), GradientComputed(LINE, 0, 1)
RECORDINGS = [
    near("fm05", "a count that nothing reads", run(MINE, saved(left=[omitted(read=False)]))),
    near("fm05", "a value that stays", run(MINE, saved(left=[omitted(changed=False)]))),
    near("fm05", "held by another checkpoint", run(MINE, saved(left=[omitted()]), saved(held=[1]))),
    near("fm08", "the first start", run(restored(None), saved(made_at=OTHER))),
    near("fm08", "what was saved is found", run(restored(), before=RESTARTED)),
    near("fm09", "slots that were there and left out",
         run(*SLOTS, saved(held=[1]), restored(optimizers=(state(),), unmatched="Found 1"))),
    near("fm09", "an optimizer that has not stepped",
         run(SLOTS[0], saved(held=[1]), SLOTS[1], restored(optimizers=(state(steps=0),), unmatched="Found 1"))),
    near("fm11", "built before its first step", run(UnbuiltModelRead(LINE, "model", LINE), updated())),
    near("fm11", "no gradients for a model that was built", run(updated(gradients=0))),
    near("fm13", "None left out with their variables",
         run(GradientComputed(OTHER, 1, 3, (3,), (1, 2)), updated(trains=(1, 2)))),
    near("fm14", "a copy that is made again in each round",
         run(COPIED, replace(COPIED, equal=False), updated(trains=(1, 2)))),
    near("fm14", "a copy that is trained alone", run(COPIED, updated(trains=(2,)))),
    near("fm19", "even parts", run(MeanReduced(LINE, (4, 4), (1.0, 5.0)))),
    near("fm19", "uneven parts of one mean", run(MeanReduced(LINE, (3, 1), (2.0, 2.0)))),
    near("fm21", "a batch that is divided", fed(1, 8), fed(2, 4, DatasetBatched(OTHER, 4))),
    near("fm21", "a batch for each replica that was asked for",
         fed(1, 8, ReplicaCountRead(LINE)), fed(2, 8, ReplicaCountRead(LINE))),
    near("fm53", "batches that are divided",
         run(strategy(), updated(), InputShared(LINE, "run", (16,)), ModelCalled(OTHER, 8, 2, (1,)))),
    near("fm53", "a batch that one replica takes",
         run(strategy(), updated(), InputShared(LINE, "run", (16,)), ModelCalled(OTHER, 16, 1, (1,)))),
    near("fm54", "another fit, from the first epoch on",
         run(forgets(0.4), loaded(), forgets(math.inf, begins=True), forgets(0.6), saved(path="best.keras"))),
    near("fm54", "a better value after the restart",
         run(forgets(0.6), loaded(), forgets(math.inf, begins=True), forgets(0.4), saved(path="best.keras"))),
    near("fm55", "the same examples and the same update", fed(1, 8), fed(2, 4)),
    near("fm55", "an update that differs later only",
         trained(0.9, BatchTaken(LINE, (8,)), devices=1), trained(0.9, BatchTaken(LINE, (4, 4)))),
    near("fm41", "set before", run(ClusterDescribed(LINE), ClusterStrategyRequested(LINE, "multi_worker", "{}"))),
    near("fm41", "never set", run(ClusterStrategyRequested(LINE, "multi_worker"))),
    near("fm57", "one device", run(KerasDistributionSet(LINE, "DataParallel", 1), variable(1))),
    near("fm57", "chosen after the model", run(variable(1), KerasDistributionSet(LINE, "DataParallel", 2))),
    near("fm58", "as many steps as were asked for", run(ModelCompiled(LINE, 4), updated())),
    near("fm58", "a step in each call", run(FitOverran(LINE, 10, 12, 1))),
    near("fm23", "only read by replicas", run(MINE)),
    near("fm23", "written once for all", run(MINE, written(replicas=0))),
    near("fm23", "in central storage", run(MINE, VariableSharedCentrally(1), written())),
    near("fm25", "loaded for evaluation",
         run(MIRRORED, variable(2), saved(held=[1]), OUTSIDE, ModelCalled(OTHER, 8, 1, (2,)))),
    near("fm25", "loaded for sampling while the other is trained",
         run(MIRRORED, variable(2), saved(held=[1]), OUTSIDE, updated(trains=(1,)))),
    near("fm25", "trained on before it was loaded",
         run(MIRRORED, variable(2), saved(held=[1]), updated(trains=(2,)), OUTSIDE)),
    near("fm26", "as many examples as before",
         run(ModelCalled(OTHER, 8, 1, (1,)), saved(held=[1]), loaded(),
             ModelCalled(OTHER, 4, 2, (2,)), updated(trains=(2,)))),
    near("fm26", "evaluated with more",
         run(ModelCalled(OTHER, 8, 1, (1,)), saved(held=[1]), loaded(), ModelCalled(OTHER, 8, 2, (2,)))),
    near("fm29", "another rate", run(saved(optimizers=(state(),)), loaded(),
                                     updated(trains=(2,), steps=0, learning_rate="0.01"))),
    near("fm29", "a schedule whose count the program sets",
         run(saved(optimizers=(state(**BY_COUNT),)), loaded(), written(number=4),
             updated(trains=(2,), **BY_COUNT))),
    near("fm29", "an optimizer that goes on", run(saved(optimizers=(state(),)), WHOLE, updated(trains=(2,)))),
    near("fm34", "a layer that nothing calls",
         run(variable(3), GradientComputed(OTHER, 1, 2, (3,), (1,)), updated(gradients=1))),
    near("fm35", "made after a restore of nothing", run(restored(None), variable(3), updated(), ended())),
    near("fm35", "all was there", run(variable(1), ended(
        restored_before_build=(RestoredBeforeBuild("ck-1", (), "", LINE),)))),
    near("fm37", "a batch that grows with the replicas",
         run(strategy(1), BatchTaken(LINE, (8,)), updated(), devices=1, role=Role.COMPARED),
         run(strategy(2), BatchTaken(LINE, (8, 8)), updated())),
    near("fm37", "a rate that grows with the replicas",
         trained(0.9, BatchTaken(LINE, (8,)), updated(learning_rate="0.1"), devices=1),
         trained(0.9, BatchTaken(LINE, (4, 4)), updated(learning_rate="0.2"))),
    near("fm37", "data that are fewer than a batch",
         trained(0.8, *FEWER, DatasetBatched(LINE, 64), devices=1),
         trained(0.9, *FEWER, DatasetBatched(LINE, 128))),
    near("fm56", "one number for a step", run(strategy(), DRAWN_ONCE, CALLED_BY_PARTS)),
    near("fm56", "what a layer of Keras draws",
         run(strategy(), replace(DRAWN_ONCE, shape=(8, 3), drawer=Owner.LAYER), CALLED_BY_PARTS)),
    near("fm38", "what an optimizer keeps for itself",
         run(replace(MIRRORED, maker=Owner.OPTIMIZER), ended(diverged_copies=(DivergedCopies(1, 0.2, ()),)))),
    near("fm38", "rounding", run(MIRRORED, ended(diverged_copies=(DivergedCopies(1, 1e-7, ()),)))),
    near("fm43", "on no line of the program", run(FunctionRetraced((), 5, RetraceCause.NUMBER, 0))),
    near("fm44", "a metric that is rounded", run(strategy(1), reported(2.0), devices=1),
         run(strategy(2), reported(2.001))),
    near("fm77", "the next examples", restarted(4, 5, 6, 7, 8)),
    near("fm77", "the examples of a start from zero", restarted(0, 1, 2, 3, 4)),
    near("fm64", "data that nobody knows", run(strategy(2), DataRanOut(OTHER, 0), keras=3)),
    near("fm64", "a number of steps", run(strategy(2), DataRanOut((), 4), keras=3)),
    near("fm69", "an epoch without data", run(EpochsLeftOut(LINE, 3, 1, 0, False), DataRanOut(LINE, 0, True))),
    near("fm69", "nobody can place it", run(EpochsLeftOut((), 3, 1, 2, True))),
    near("fm65", "a file of the whole model", run(variable(1), saved(held=[1]), loaded(variables=(1,)), keras=3)),
    near("fm65", "a file without a variable that is trained anew",
         run(variable(1), saved(left=[omitted()]), updated(trains=(1,)), keras=3)),
    near("fm65", "weights that nothing reads, of a layer that was built once more",
         run(variable(1), saved(left=[omitted(of_saved=True, read=False)]), updated(trains=(2,)), keras=3)),
    near("fm66", "a variable of no layer", run(MINE, VariableRead(1), updated(trains=(2,)), keras=3)),
    near("fm66", "a variable of a layer that Keras made", run(variable(1), VariableRead(1), updated(trains=(2,)), keras=3)),
    near("fm72", "a model that is not loaded", run(ModelSettings(LINE, "m.keras", False, (FACTOR,)))),
    near("fm72", "a file that a restarted program loads",
         run(LoadedOtherwise(LINE, "/m.keras", (ChangedSetting(FACTOR, "1.0"),), True, 3.0, 1.0)),
         run(Loaded(OTHER, "load", "/m.keras", (), (), False, 1), role=Role.RESTARTED)),
    near("fm72", "a model that is loaded as it was saved", run(
        ModelSettings(LINE, "m.keras", False, (FACTOR,)), ModelSettings(LINE, "m.keras", True, (FACTOR,), 1))),
    near("fm70", "one model", run(variable(1), updated(), StepsCounted(8, 0, 8, 1, (), 0, None, (), None))),
    near("fm70", "another model that is trained, too", run(
        variable(1), updated(), variable(2), updated(trains=(2,)), StepsCounted(8, 0, 8, 1, (), 0, None, (), None))),
    near("fm68", "half a loss, in no step of the program",
         run(strategy(1), MetricsReported(OTHER, (Metric("loss", 1.0),), LINE), devices=1),
         run(strategy(2), MetricsReported(OTHER, (Metric("loss", 0.5),), LINE))),
    near("fm68", "twice a loss, in no step of the program",
         run(strategy(1), MetricsReported(OTHER, (Metric("a_loss", 1.0),), LINE), devices=1),
         run(strategy(2), MetricsReported(OTHER, (Metric("a_loss", 2.0),), LINE))),
    near("fm68", "the same loss", run(strategy(1), reported(2.0), devices=1), run(strategy(2), reported(2.0))),
    near("fm47", "all workers that save", *[
        run(saved(), task=f"worker {n}", role=Role.TASK) for n in range(2)]),
    near("fm47", "a worker that hangs where nobody saves",
         run(outcome=Outcome.HANGS, task="worker 0", role=Role.TASK),
         run(task="worker 1", role=Role.TASK)),
    near("fm59", "a worker gives up while it saves",
         run(replace(TIMED_OUT, traceback=f"python/checkpoint/checkpoint.py {TIMED_OUT.traceback}"),
             task="worker 0", role=Role.TASK, outcome=Outcome.RAISED), run(task="worker 1", role=Role.TASK)),
    near("fm59", "all workers give up",
         *(run(TIMED_OUT, task=name, role=Role.TASK, outcome=Outcome.RAISED) for name in ("worker 0", "worker 1"))),
    near("fm49", "runs that agree", run(strategy(2), PartUsed(LINE, Part.SCALAR_LOSS))),
    near("fm50", "runs that agree", run(strategy(2), updated(clipnorm=0.5))),
    near("fm51", "finite numbers", run(strategy(2), updated(kind="LossScaleOptimizer"))),
    near("fm52", "finite numbers", run(strategy(2), PartUsed(LINE, Part.BATCH_STATISTICS))),
    near("fm46", "a rate that was lowered in training",
         run(saved(optimizers=(state(learning_rate="0.25", variables=(7, 8)),)),
             LearningRateRestored(LINE, 0.5, 0.25, (7, 8)),
             updated(learning_rate="0.25", variables=(7, 8)))),
    near("fm61", "a short program", run(RunEager(LINE, 20, 2, False))),
    near("fm61", "one replica", run(RunEager(LINE, 500, 1, False))),
    near("fm61", "eager on purpose", run(RunEager(LINE, 500, 2, True))),
    near("fm63", "a generator that waits, too", run(GeneratorRead(LINE, 320, 20, 1.0, 0.4, 1))),
    near("fm63", "a generator that runs ahead", fed(2, 8, GeneratorRead(LINE, 640, 20, 2.0, 1.0, 1))),
    near("fm46", "a rate that was set again",
         run(saved(optimizers=(state(learning_rate="0.25", variables=(4, 5)),)),
             LearningRateRestored(LINE, 0.05, 0.25, (7, 8)),
             updated(learning_rate="0.05", variables=(7, 8)))),
]  # fmt: skip


@pytest.mark.parametrize("mode, recordings", RECORDINGS)
def test_a_recording_that_is_of_no_mode(mode, recordings):
    assert modes(*recordings) == []


# Programs


@dataclass(frozen=True)
class Near:
    """A correct program in place of one that has the mode: some lines of a correct one are others."""

    mode: str
    base: str
    old: str
    new: str


AGAIN = """
with strategy.scope():
    other = tf.keras.models.clone_model(model)
    other_optimizer = tf.keras.optimizers.SGD(0.02, momentum=0.9)
    other_optimizer.build(other.trainable_variables)
saved = tf.train.Checkpoint(model=model, optimizer=optimizer).save("ck/last")
tf.train.Checkpoint(model=other, optimizer=other_optimizer).restore(saved)
model, optimizer = other, other_optimizer
train = tf.function(lambda inputs, labels: strategy.run(step, args=(inputs, labels)))
for inputs, labels in data:
    train(inputs, labels)
"""
SAMPLED = """
model.save("model.keras")
plain = tf.keras.models.load_model("model.keras")
print("error:", float(tf.reduce_mean(tf.square(plain(x[:8]) - y[:8]))))
model.fit(data, epochs=1, verbose=0)
"""
AVERAGED = """
averaged = tf.keras.Sequential([tf.keras.Input((3,)), *map(type(layers[0]).from_config, [each.get_config() for each in layers])])
averaged.load_weights(model.save_weights("w.weights.h5") or "w.weights.h5")
for mean, weight in zip(averaged.weights, model.weights):
    mean.assign(0.9 * mean + 0.1 * weight)
print(averaged.predict(x[:8], verbose=0).shape)
"""
DIVIDED = """\
def parts(context):
    size = context.get_per_replica_batch_size(BATCH)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(size)


data = strategy.distribute_datasets_from_function(parts)
"""
WHOLE_MASK = """\
mask = tf.cast(labels[:, 0] > 4.0, tf.float32)
    context = tf.distribute.get_replica_context()
    count = context.all_reduce("SUM", tf.reduce_sum(mask))
    return tf.reduce_sum(errors * mask) / (count + 1e-6)"""
LAST = "        loss = train(inputs, labels)\n"
FITTED = "model.fit(data, epochs=2, verbose=0)\n"
BUILT = "    optimizer.build(model.trainable_variables)\n"
DISTRIBUTED = "data = strategy.experimental_distribute_dataset(data)\n"
RAMP = """
ramp = tf.Variable(0.5, trainable=False)


def loss_of(labels, outputs):
    errors = ramp * tf.square(labels - outputs)[:, 0]
"""
NEAR = [
    Near(
        "fm07",
        LOOP,
        "\ndef loss_of(labels, outputs):\n    errors = tf.square(labels - outputs)[:, 0]\n",
        RAMP,
    ),
    Near("fm09", LOOP, LAST, LAST + AGAIN),
    Near("fm19", LOOP, "EXAMPLES, BATCH = 64, 16", "EXAMPLES, BATCH = 67, 16"),
    Near("fm21", LOOP, DISTRIBUTED, DIVIDED),
    Near("fm23", LOOP, BUILT, f"{BUILT}scale = tf.Variable(1.0)\n"),
    Near("fm25", FIT, FITTED, FITTED + SAMPLED),
    Near("fm25", FIT, FITTED, FITTED + AVERAGED),
    Near("fm38", FIT, 'loss="mse")', 'loss="mse", metrics=["mae"])'),
    Near(
        "fm43", LOOP, LAST, "        for _ in range(6):\n            loss = train(inputs, labels)\n"
    ),
    Near(
        "fm49", FIT, 'loss="mse")', "loss=lambda a, b: tf.reduce_mean(tf.square(a - b), axis=-1))"
    ),
    Near("fm50", FIT, "SGD(0.02)", "SGD(0.02, global_clipnorm=1e6)"),
    Near(
        "fm51",
        FIT,
        *optimizer(
            "SGD(0.02)\n    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer)"
        ),
    ),
    Near("fm52", FIT, *layers("L.BatchNormalization(synchronized=True), L.Dense(1)")),
    Near(
        "fm55",
        LOOP,
        "return tf.nn.compute_average_loss(errors, global_batch_size=BATCH)",
        WHOLE_MASK,
    ),
    Near(
        "fm58",
        FIT,
        'loss="mse")\n',
        'loss="mse", steps_per_execution=1)\n',
    ),
    Near("fm44", FIT, 'loss="mse")', 'loss="mse", metrics=[tf.keras.metrics.MeanAbsoluteError()])'),
]


@pytest.mark.replayed
@pytest.mark.parametrize("program", NEAR, ids=[each.mode for each in NEAR])
def test_a_program_that_is_of_no_mode(program, tmp_path):
    text = edited(program.base, [(program.old, program.new)])
    examination = examined(tmp_path, text)
    assert [(each.mode, each.line) for each in examination.findings] == []
    assert (examination.failure, len(examination.recordings)) == ("", 2)


# How many there are

BROKEN = "broken", "exercise"  # programs of every mode that have it


def test_every_rule_has_as_many_near_misses_as_its_mode_has_programs():
    counted = Counter([mode for mode, _ in MESSAGES])
    counted.update(each.values[0] for each in RECORDINGS)
    counted.update(each.mode for each in NEAR)
    with_rule = {module.__name__.split(".")[-2][:4] for module in modules_of_modes("rule")}
    assert {mode for mode in with_rule if counted[mode] < len(BROKEN)} == set()
