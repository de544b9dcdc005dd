"""The activations that are counted in the graph of a step, compared with sizes that are known."""

import pytest
from strategy_clinic.examiner.reading import from_json
from strategy_clinic.observer.activations import PROBES, ActivationCounts, Kept, Steps
from strategy_clinic.observer.context import Context, Settings
from strategy_clinic.observer.events import Activations, ObserverFailed
from strategy_clinic.observer.observer import Observer

FEW, MANY = PROBES
FLOAT = 4  # bytes


# What several calls of `gradient` keep. No TensorFlow


class Graph:
    pass


def most(*calls):
    graph = Graph()
    steps = Steps(graph, ())
    steps.calls.extend(calls)
    return steps.most()


def each(size):
    return size * FEW, size * MANY


def test_what_a_call_reads_is_what_is_kept():
    call = Kept(9, {"a": (1, (100, 100)), "b": (2, each(7))}, frozenset({"c"}))
    assert most(call) == Activations(fixed=100, per_example=7, unknown=1)


def test_two_losses_of_one_forward_pass_keep_a_tensor_once():
    first = Kept(9, {"a": (1, (100, 100)), "b": (2, (10, 10))}, frozenset())
    second = Kept(12, {"a": (1, (100, 100)), "c": (3, (1, 1))}, frozenset())
    assert most(first, second) == Activations(111, 0, 0)


def test_passes_one_after_the_other_keep_what_the_larger_one_keeps():
    first = Kept(9, {"a": (1, (100, 100))}, frozenset())
    second = Kept(30, {"b": (20, (90, 90))}, frozenset())
    assert most(first, second) == Activations(100, 0, 0)


# Graphs


@pytest.fixture
def counted(started, tmp_path, request):
    """Trains a variable with the gradients of a loss in a graph, and returns what is counted."""
    import tensorflow as tf

    path = tmp_path / "events.jsonl"
    observer = Observer(Settings(str(path), uncounted=getattr(request, "param", False)))
    observer.start()

    def count(loss, *shapes, wrap=tf.function):
        weights = tf.Variable(tf.ones((16, 16)))
        optimizer = tf.keras.optimizers.SGD()
        optimizer.build([weights])

        def step(*inputs):
            with tf.GradientTape() as tape:
                result = loss(weights, *inputs)
            result, given = result if isinstance(result, tuple) else (result, None)
            gradient = tape.gradient(result, weights, output_gradients=given)
            optimizer.apply_gradients([(gradient, weights)])

        wrap(step)(*(tf.ones(shape) for shape in shapes))
        events = map(from_json, path.read_text().splitlines())
        assert [event for event in events if isinstance(event, ObserverFailed)] == []
        return observer.counts.activations.most

    yield count
    observer.stop()


def with_tensorflow(test):
    return pytest.mark.slow(test)


def two_layers(weights, inputs):
    """Keeps the inputs, two results of `tanh` and what is squared; a reshaped tensor is the same buffer."""
    import tensorflow as tf

    hidden = tf.tanh(inputs @ weights)
    hidden = tf.reshape(tf.tanh(tf.reshape(hidden, [-1, 4])), [-1, 16])
    return tf.reduce_mean(tf.square(hidden @ weights))


KEPT = 4 * 16 * FLOAT  # of one example in `two_layers`


@with_tensorflow
def test_a_graph_keeps_what_its_gradients_read(counted):
    assert counted(two_layers, (8, 16)) == Activations(8 * KEPT, 0, 0)


@with_tensorflow
def test_gradients_that_are_given_begin_the_backward_pass(counted):
    import tensorflow as tf

    def loss(weights, inputs):
        hidden = tf.tanh(inputs @ weights)
        return hidden, tf.cos(inputs)

    # The inputs, the result of `tanh`, and the gradients that are given.
    assert counted(loss, (8, 16)) == Activations(8 * 3 * 16 * FLOAT, 0, 0)


def test_a_call_that_trains_nothing_is_not_counted(tmp_path):
    counts, graph = ActivationCounts(Context(Settings(str(tmp_path / "events.jsonl")))), Graph()
    for trains, expected in ((False, None), (True, Activations(100, 0, 0))):
        steps = Steps(graph, ())
        steps.calls.append(Kept(9, {"a": (1, (100, 100))}, frozenset()))
        counts.traced.append(steps)
        counts.step_ended(trains)
        assert (counts.most, counts.traced) == (expected, [])


@with_tensorflow
@pytest.mark.parametrize("counted", [True], indirect=True)
def test_nothing_is_counted_where_nobody_reads_it(counted):
    assert counted(two_layers, (8, 16)) is None


@with_tensorflow
def test_where_the_batch_is_not_known_an_example_is_counted(counted):
    import tensorflow as tf

    def wrap(step):
        return tf.function(step, input_signature=[tf.TensorSpec([None, 16])])

    found = counted(two_layers, (8, 16), wrap=wrap)
    # The mean keeps the number of its values, too, which is computed.
    assert (found.per_example, found.unknown) == (KEPT, 0) and found.fixed < 10


@with_tensorflow
def test_sizes_that_more_than_the_batch_decides_are_not_counted(counted):
    import tensorflow as tf

    def loss(weights, inputs):
        return tf.reduce_mean(tf.square(tf.tanh(inputs @ weights)))

    def wrap(step):
        return tf.function(step, input_signature=[tf.TensorSpec([None, None, 16])])

    found = counted(loss, (8, 3, 16), wrap=wrap)
    assert found.per_example == 0 and found.unknown == 2  # the inputs, and what is squared


@with_tensorflow
def test_a_function_within_the_step_keeps_its_part(counted):
    import tensorflow as tf

    inner = tf.function(two_layers)
    assert counted(inner, (8, 16)) == Activations(8 * KEPT, 0, 0)


@with_tensorflow
def test_what_a_gradient_computes_later_is_not_kept(counted):
    """The gradient of a squared difference computes the difference again, and waits with that for the gradient before it."""
    import tensorflow as tf

    def loss(weights, inputs):
        hidden = inputs @ weights
        return tf.reduce_mean(tf.math.squared_difference(hidden, tf.reduce_mean(hidden, 0)))

    # The inputs, their product with the weights, and its means
    assert counted(loss, (8, 16)) == Activations((2 * 8 + 1) * 16 * FLOAT, 0, 0)


@with_tensorflow
@pytest.mark.parametrize(
    "shape, order, copies",
    [
        ((8, 16), [0, 1], 0),
        ((8, 1, 16), [1, 0, 2], 0),
        ((4, 2, 16), [1, 0, 2], 1),
    ],
    ids=["nothing", "a dimension of one", "two dimensions"],
)
def test_a_transposition_keeps_a_copy_if_it_moves_numbers(counted, shape, order, copies):
    import tensorflow as tf

    def loss(weights, inputs):
        hidden = tf.reshape(tf.tanh(inputs @ weights), shape)
        moved = tf.reshape(tf.transpose(hidden, order), [8, 16])
        return tf.reduce_mean(tf.square(moved @ weights))

    # The inputs, the result of `tanh`, what is squared, and the copy; and the order in which the gradient is transposed
    expected = (3 + copies) * 8 * 16 * FLOAT
    assert counted(loss, (8, 16)).fixed == pytest.approx(expected, abs=20)


@with_tensorflow
def test_a_result_with_a_gradient_of_its_own_is_kept_once(counted):
    import tensorflow as tf

    @tf.custom_gradient
    def doubled(hidden):
        total, result = tf.reduce_sum(hidden), 2 * hidden
        return (total, result), lambda _, given: given * result

    def loss(weights, inputs):
        _, result = doubled(inputs @ weights)
        return tf.reduce_mean(tf.square(result @ weights))

    # The inputs, what is doubled and read by both gradients, and what is squared
    assert counted(loss, (8, 16)) == Activations(3 * 8 * 16 * FLOAT, 0, 0)


@with_tensorflow
def test_a_tensor_from_outside_of_the_graph_is_not_kept(counted):
    import tensorflow as tf

    outside = tf.eye(16)

    def loss(weights, inputs):
        return tf.reduce_mean(inputs @ weights @ outside)

    assert counted(loss, (8, 16)) == Activations(8 * 16 * FLOAT, 0, 0)


@with_tensorflow
@pytest.mark.parametrize("kind", ["float64", "float16", "bool"])
def test_a_number_has_the_bytes_of_its_type(counted, kind):
    import tensorflow as tf

    def loss(weights, inputs):
        hidden = inputs @ weights
        if kind == "bool":
            return tf.reduce_mean(tf.where(hidden > 1, hidden, 2 * hidden))
        return tf.reduce_mean(tf.cast(tf.tanh(tf.cast(hidden, kind)), "float32"))

    # The inputs, and one tensor of the type
    expected = 8 * 16 * (FLOAT + tf.dtypes.as_dtype(kind).size)
    assert counted(loss, (8, 16)) == Activations(expected, 0, 0)


@with_tensorflow
def test_nothing_is_kept_for_gradients_that_nobody_asks_for(counted):
    import tensorflow as tf

    other, constant = tf.Variable(tf.ones((8, 16))), tf.ones((8, 16))

    def loss(weights, inputs):
        return tf.reduce_mean(inputs @ weights * other * constant)

    # Only the inputs: the products are read by the gradients of the other variable and of the constant
    assert counted(loss, (8, 16)) == Activations(8 * 16 * FLOAT, 0, 0)


def rounds(weights, inputs):
    """Keeps what is squared, and the result of each of the five rounds."""
    import tensorflow as tf

    (last,) = tf.while_loop(
        lambda state: True,
        lambda state: [tf.tanh(state @ weights)],
        [inputs],
        maximum_iterations=5,
    )
    return tf.reduce_mean(tf.square(last))


def rounds_of_a_sequence(weights, inputs):
    """Keeps what is squared, and the sum in each of the five rounds, and its result."""
    import tensorflow as tf

    parts = tf.TensorArray("float32", 5).unstack(tf.stack([inputs] * 5))
    results = tf.TensorArray("float32", 1)
    *_, results = tf.while_loop(
        lambda i, *_: i < 5,
        lambda i, state, results: (
            i + 1,
            after := tf.tanh((state + parts.read(i)) @ weights),
            results.write(0, after),
        ),
        [0, tf.zeros((8, 16)), results],
    )
    return tf.reduce_mean(tf.square(results.stack()))


# A function hands its gradient all that it might read: the sequence and the last result, too, which count as kept.
@with_tensorflow
@pytest.mark.parametrize(
    "loss, in_function, tensors",
    [
        (rounds, False, 6),
        (rounds, True, 6),
        (rounds_of_a_sequence, False, 11),
        (rounds_of_a_sequence, True, 11 + 5 + 1),
    ],
)
def test_a_loop_keeps_each_round(counted, loss, in_function, tensors):
    import tensorflow as tf

    found = counted(tf.function(loss) if in_function else loss, (8, 16))
    # And numbers of rounds
    assert found.fixed == pytest.approx(tensors * 8 * 16 * FLOAT, abs=100) and found.unknown == 0


@with_tensorflow
def test_a_loop_that_runs_until_its_values_end_it_is_not_counted(counted):
    import tensorflow as tf

    def loss(weights, inputs):
        (last,) = tf.while_loop(
            lambda state: tf.reduce_sum(state) > 1e6,
            lambda state: [tf.tanh(state @ weights)],
            [inputs],
        )
        return tf.reduce_mean(tf.square(last))

    assert counted(loss, (8, 16)).unknown > 0


@with_tensorflow
def test_eager_steps_are_not_counted(counted):
    assert counted(two_layers, (8, 16), wrap=lambda step: step) is None
