"""The repair of fm55 for a mask and an ignored class: a sum whose weights add up to one, the same on any number of devices."""

import pytest
from strategy_clinic.programs.run import Job, run_programs
from strategy_clinic.setups.parameters import Setup

PROGRAM = """import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
ids = tf.constant([[1, 1, 1, 1]] * 4 + [[2, 0, 0, 0]] * 4)


def weighted(ids, labels):
    kept = tf.cast(ids != 0, tf.float32)
    return ids, labels, kept / tf.reduce_sum(kept)


data = tf.data.Dataset.from_tensor_slices((ids, LABELS)).batch(8)
with strategy.scope():
    words = tf.keras.layers.Embedding(3, 2, mask_zero=MASKED, embeddings_initializer="ones")
    model = tf.keras.Sequential([tf.keras.Input((4,)), words, LAYERS])
    model.compile(tf.keras.optimizers.SGD(0.5), LOSS)
history = model.fit(data, verbose=0).history
print([round(float(tf.reduce_sum(abs(each))), 3) for each in model.get_weights()], round(history["loss"][0], 3))
"""
DENSE = 'tf.keras.layers.Dense(COUNT, kernel_initializer="ones")'
CELLS = 'tf.keras.layers.GRU(2, return_sequences=True, kernel_initializer="ones", recurrent_initializer="zeros")'
CASES = {
    "mean squared error": (
        "tf.cast(ids[:, :, None], tf.float32)",
        "MeanSquaredError(",
        DENSE.replace("COUNT", "1"),
    ),
    "words to come": (
        "ids",
        "SparseCategoricalCrossentropy(from_logits=True, ",
        f"{CELLS}, {DENSE}".replace("COUNT", "3"),
    ),
    "an ignored class": (
        "tf.where(ids == 0, -1, ids)",
        "SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1, ",
        DENSE.replace("COUNT", "3"),
    ),
}


def printed(case: str, reduction: str, keras: int) -> list[str]:
    """Returns what is printed on one, two and four devices; a sum has the weights."""
    labels, loss, layers = CASES[case]
    text = PROGRAM.replace("LABELS", labels).replace("LAYERS", layers)
    text = text.replace("MASKED", str("ignore_class" not in loss))
    text = text.replace("LOSS", f'tf.keras.losses.{loss}reduction="{reduction}")')
    if reduction == "sum":
        text = text.replace(".batch(8)", ".batch(8).map(weighted)")
    jobs = [Job(text, Setup("mirrored", count, keras=keras)) for count in (1, 2, 4)]
    return [repr(run.error) if run.error else run.printed for run in run_programs(jobs)]


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("keras", [3, 2])
@pytest.mark.parametrize("case", CASES)
def test_a_sum_with_weights_is_that_of_one_device_and_a_mean_is_not(case, keras):
    one, *others = printed(case, "sum", keras)
    assert one.startswith("[") and others == [one, one]
    mean, *means = printed(case, "sum_over_batch_size", keras)
    assert mean.split("]")[0] == one.split("]")[0] and mean not in means
