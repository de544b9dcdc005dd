"""The TPU compiler: what TensorFlow hands to it, what it answers where it is installed, and what is said where it is not."""

import contextlib

import pytest
from strategy_clinic import Setup, cli, runner
from strategy_clinic.base import files
from strategy_clinic.base.errors import Unavailable
from strategy_clinic.compiler import lowering, programs
from strategy_clinic.modes import registry
from strategy_clinic.setups import tpu

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tensorflow")]

installed = pytest.mark.skipif(bool(programs.not_installed()), reason=programs.not_installed())
FM24 = registry.read_mode(files.page_source("fm24_xla_refuses"))


def context():
    import tensorflow as tf

    return tf.distribute.get_replica_context()


def traced(make_step, arguments=(), name="v5e-8", computation=(1, 1, 1, 1), spmd=False):
    """The strategy and the program that it traced; what only a TPU can run is traced all the same."""
    with tpu.watched(name) as seen:
        strategy = tpu.strategy(computation=computation, spmd=spmd)
        with contextlib.suppress(Unavailable):
            runner(strategy)(make_step(strategy), args=arguments)
        return seen[-1]


def adam(strategy):
    import tensorflow as tf

    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((6,)), tf.keras.layers.Dense(2)])
        optimizer = tf.keras.optimizers.Adam(0.05)
        optimizer.build(model.trainable_variables)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.ones((4, 6)))))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return step


def gather(strategy):
    import tensorflow as tf

    return lambda: context().all_gather(tf.ones((2, 3), tf.int64), 0)


def image(strategy):
    """The image that the reference splits over eight logical devices."""
    import tensorflow as tf

    def step(data):
        data = strategy.experimental_split_to_logical_devices(data, [1, 2, 4, 1])
        return tf.reduce_mean(tf.nn.conv2d(data, tf.ones((3, 3, 3, 8)), 1, "SAME"))

    return step


def with_own_weights(strategy):
    import tensorflow as tf

    with strategy.scope():
        weights = tf.Variable(tf.ones((64, 8)))

    def step(data):
        data = strategy.experimental_split_to_logical_devices(data, [1, 2])
        weights.assign_add(tf.ones((64, 8)))
        return tf.reduce_sum(tf.matmul(data, weights))

    return step


def instructions(program) -> dict:
    from tensorflow.compiler.xla.service import hlo_pb2

    module = hlo_pb2.HloModuleProto.FromString(lowering.lowered(program))
    return {each.opcode: each for part in module.computations for each in part.instructions}


def test_replicas_meet_in_the_compilers_own_instructions():
    summed, gathered = instructions(traced(adam)[1]), instructions(traced(gather)[1])
    assert [list(g.replica_ids) for g in summed["all-reduce"].replica_groups] == [list(range(8))]
    assert len(gathered["all-to-all"].operand_ids) == 8
    assert "custom-call" not in summed and "custom-call" not in gathered


def test_the_program_is_that_of_one_replica():
    """Eight replicas written out would have eight times the parameters."""
    from tensorflow.compiler.xla.service import hlo_pb2

    module = hlo_pb2.HloModuleProto.FromString(lowering.lowered(traced(adam)[1]))
    entry = next(part for part in module.computations if part.id == module.entry_computation_id)
    shapes = [tuple(p.dimensions) for p in entry.program_shape.parameters]
    assert sorted(shapes).count((6, 2)) == 3  # the kernel and its two slots


PROGRAM = """import tensorflow as tf

strategy = tf.distribute.get_strategy()


@tf.function
def train_step():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.ones(3)))


print(train_step())
{}
"""


@pytest.mark.parametrize("last", ["", "1 / 0"], ids=["ends", "fails"])
def test_what_a_program_traces_is_compiled(last, monkeypatch):
    """Whether or not it then fails; afterwards TensorFlow's names are what they were."""
    import tensorflow as tf

    plain = tf.distribute.TPUStrategy
    monkeypatch.setattr(programs, "of_step", lambda strategy, step: strategy.described)
    run = programs.functools.partial(programs.run_program, PROGRAM.format(last))
    assert programs.of_steps(run, Setup("tpu_traced", 8), "v5e-8") == ["v5e-8"]
    assert tf.distribute.TPUStrategy is plain


def test_a_program_that_a_tpu_refuses_is_said_to_be_refused_by_the_class():
    text = (
        "import tensorflow as tf\n\nstrategy = tf.distribute.get_strategy()\nstrategy.run(print)\n"
    )
    run = programs.functools.partial(programs.run_program, text)
    (answer,) = programs.of_steps(run, Setup("tpu_traced", 8), "v5e-8")
    assert (answer.outcome, answer.by, answer.evidence) == ("raises", "TPUStrategy", "traced")
    (idle,) = programs.of_steps(lambda setup: "", Setup("tpu_traced", 8), "v5e-8")
    assert idle.outcome == "unavailable"


def test_refusal_to_lower_is_quoted():
    import tensorflow as tf

    found = programs.of_function(lambda x: tf.strings.as_string(x), tf.ones(2))
    assert (found.outcome, found.by) == ("raises", "TensorFlow")
    assert found.says.startswith("Detected unsupported operations") and "{{" not in found.says


def test_an_exchange_in_a_condition_is_refused_in_words():
    import tensorflow as tf

    def halfway(strategy):
        def summed():
            return context().all_reduce("SUM", tf.ones(3))

        return lambda: tf.cond(tf.random.uniform(()) > 0, summed, lambda: tf.zeros(3))

    found = programs.of_step(*traced(halfway))
    assert found.outcome == "unavailable" and "inside a condition" in found.says


def test_missing_compiler_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(programs, "not_installed", lambda: "the TPU compiler is not here")
    assert cli.main(["compile", "fm24"]) == 2
    assert capsys.readouterr().err == "clinic: the TPU compiler is not here\n"
    programs.show_compiled(FM24, {}, Setup())
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Not compiled here: the TPU compiler is not here"
    assert len(said) > 10 and all(" on v5e-8 (recorded with libtpu " in line for line in said[1:])


@pytest.mark.parametrize(
    "program, outcome, says",
    [
        ("import os; os.abort()", "crashes", "ended with status -6"),
        ("import time; time.sleep(60)", "hangs", "no answer within 1 seconds"),
        ("import sys; sys.exit(3)", "crashes", "ended with status 3"),
    ],
)
def test_crash_or_hang_of_the_compiler_is_an_answer(program, outcome, says, tmp_path, monkeypatch):
    (tmp_path / "compiler.py").write_text(program)
    monkeypatch.setattr(programs, "COMPILER", tmp_path / "compiler.py")
    monkeypatch.setattr(programs, "COMPILING", 1)
    found = programs.compile_apart(b"", {})
    assert found.outcome == outcome and says in found.says


def test_compiler_process_imports_the_libtpu_package(tmp_path, monkeypatch):
    """Its own file has the package's name."""
    (tmp_path / "libtpu").mkdir()
    for name in ("__init__.py", "libtpu.so"):
        (tmp_path / "libtpu" / name).write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    request = dict.fromkeys(("topology", "replicas", "partitions", "spmd"))
    said = programs.compile_apart(b"", request).says
    assert str(tmp_path / "libtpu" / "libtpu.so") in said


@installed
@pytest.mark.parametrize("name", tpu.TPUS)
def test_training_step_compiles_for_every_tpu(name):
    found = programs.of_step(*traced(adam, name=name))
    assert (found.outcome, found.says) == ("works", "")
    assert found.replicas == (4 if name == "v4-8" else 8) and found.memory["argument"]


@installed
def test_image_compiles_for_logical_devices_under_spmd_only():
    import tensorflow as tf

    whole = {"arguments": (tf.ones((4, 64, 64, 3)),), "name": "v2-8", "computation": (2, 2, 1, 2)}
    found = programs.of_step(*traced(image, **whole, spmd=True))
    assert (found.outcome, found.partitions) == ("works", 8)
    found = programs.of_step(*traced(image, **whole, spmd=False))
    assert found.says == "UNIMPLEMENTED: Non-SPMD model parallelism is not supported."


@installed
def test_divided_variables_compile():
    import tensorflow as tf

    arguments = {"arguments": (tf.ones((32, 64)),), "name": "v2-8", "computation": (1, 1, 1, 2)}
    found = programs.of_step(*traced(with_own_weights, **arguments, spmd=True))
    assert (found.outcome, found.replicas, found.partitions) == ("works", 4, 2)


@installed
def test_what_this_cpu_compiles_and_a_tpu_does_not():
    import tensorflow as tf

    def doubles(x):
        return tf.math.real(tf.signal.fft(tf.cast(x, tf.complex128)))

    tf.function(doubles, jit_compile=True)(tf.ones((4, 4)))
    found = programs.of_function(doubles, tf.TensorSpec((4, 4)))
    assert found.by == "the TPU compiler" and "Unexpected operand type for FFT" in found.says
