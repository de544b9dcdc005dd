"""What the observer counts of speed and memory, compared with what the program says itself."""

import textwrap
import traceback

import pytest
from edited_programs import examined
from strategy_clinic.observer import counts
from strategy_clinic.observer.events import GeneratorRead, RunEager, StepsCounted

# Prints the bytes of all variables, by device, in the order of the devices.
PROGRAM = """
    import collections
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        layers = [tf.keras.Input((4,)), tf.keras.layers.Dense(100), tf.keras.layers.Dense(1)]
        model = tf.keras.Sequential(layers)
        optimizer = tf.keras.optimizers.Adam()
        optimizer.build(model.trainable_variables)


    def examples():
        for i in range(96):
            yield tf.fill([4], i / 96)


    data = tf.data.Dataset.from_generator(examples, output_signature=tf.TensorSpec([4])).batch(8)


    def step(inputs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss


    WRAP
    def train(inputs):
        return strategy.reduce("SUM", strategy.run(step, args=(inputs,)), axis=None)


    for inputs in strategy.experimental_distribute_dataset(data):
        loss = train(inputs)
        print(f"{loss:.3f}")
    held = collections.Counter()
    for variable in [*model.variables, *optimizer.variables]:
        for copy in strategy.experimental_local_results(variable.value):
            held[copy.device] += copy.numpy().nbytes
    print("BYTES", *(held[device] for device in sorted(held)))
"""


def watched(folder, wrap):
    text = textwrap.dedent(PROGRAM).replace("WRAP", wrap)
    recording = examined(folder, text).recordings[0]
    printed = next(line for line in recording.output.splitlines() if line.startswith("BYTES"))
    return recording, list(map(int, printed.split()[1:]))


@pytest.mark.replayed
@pytest.mark.parametrize(
    "wrap, graph_calls, eager_runs",
    [
        # What it counts as it runs, no other live test compares.
        pytest.param("@tf.function", 12, 0, marks=[pytest.mark.live, pytest.mark.slow]),
        ("", 0, 12),
    ],
)
def test_bytes_and_steps_are_those_of_the_program(wrap, graph_calls, eager_runs, tmp_path):
    recording, truth = watched(tmp_path, wrap)
    (counted,) = recording.of(StepsCounted)
    assert (counted.graph_calls, counted.eager_runs) == (graph_calls, eager_runs)
    assert (counted.updates, counted.traces) == (12, int(graph_calls > 0))
    held = [each.weights + each.slots for each in counted.held]
    assert len(truth) == 2 and held == pytest.approx(truth, rel=0.1)
    (read,) = counted.reads
    assert (counted.read, read.times, read.location[0].line) == (11, 11, 36)
    assert 0 <= counted.input_share <= 1
    (made,) = recording.of(GeneratorRead)
    assert (made.steps, made.at_once) == (11, 1) and made.elements <= 96
    assert [(each.calls, each.replicas) for each in recording.of(RunEager)] == (
        [] if graph_calls else [(12, 2)]
    )


# Generators


def generated(generator):
    given = counts.Generators(())
    return given, given.timed(generator)


def test_a_generator_gives_what_it_gives():
    given, timed = generated(lambda count: (n * n for n in range(count)))
    assert [list(timed(3)), list(timed(2))] == [[0, 1, 4], [0, 1]]
    assert given.total()[1] == 5 and given.running["most"] == 1


def test_an_error_of_a_generator_has_its_own_lines_only():
    def failing():
        yield 1
        raise KeyError("x")

    _, timed = generated(failing)
    with pytest.raises(KeyError) as raised:
        list(timed())
    files = {frame.filename for frame in traceback.extract_tb(raised.tb)}
    assert files == {__file__}


def test_a_generator_that_another_one_reads_is_not_alone():
    given, timed = generated(lambda inner: (list(inner) for _ in range(1)))
    list(timed(timed([1])))
    assert given.running["most"] == 2
