"""Compares counted activations with memory: `python tools/activations_in_memory.py [KERAS [NAME]]` prints a table.

Each program runs twice: watched, which counts, and under TensorFlow's profiler, which records when the memory of each tensor is
allocated and freed, and by which operation. Measured are the bytes that the forward pass of one replica has allocated in a step
and not freed when its gradients begin; and the batch, which is allocated before. The last column has what operations of the
backward pass have allocated by then, since they need no gradient, such as zeros. Scratch memory of kernels is in neither.
LSTM on Keras 2 is a function, whose operations in a loop do not say their replica: on two devices the memory of both is measured.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.examiner.runs.sandbox import Sandbox
from strategy_clinic.observer.events import StepsCounted

# An operation of this name begins the backward pass of each model. It checks numbers, so that no optimizer of graphs removes it.
BEGINS = "gradients_begin"
START = """
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
parts = [tf.config.LogicalDeviceConfiguration() for _ in range(DEVICES)]
tf.config.set_logical_device_configuration(cpu, parts)
tf.keras.utils.set_random_seed(1)
layers = tf.keras.layers

@tf.custom_gradient
def end(results):
    return tf.identity(results), lambda given: tf.debugging.check_numerics(given, "", "BEGINS")

class End(layers.Layer):
    def call(self, results):
        return end(results)

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
MODEL
    model.compile(tf.keras.optimizers.Adam(0.001), "mse", jit_compile=False)
    model.optimizer.build(model.trainable_variables)
targets = np.zeros((len(inputs), 1), "float32")
data = tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(len(inputs))
"""
FIT = """
def train():
    model.fit(data, verbose=0)
"""
LOOP = """
def step(batch, target):
    with tf.GradientTape() as tape:
        errors = tf.square(model(batch, training=True) - target)
        loss = tf.nn.compute_average_loss(errors, global_batch_size=len(inputs))
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

@tf.function
def run(batch, target):
    strategy.run(step, args=(batch, target))

def train():
    for batch, target in strategy.experimental_distribute_dataset(data):
        run(batch, target)
"""
WAYS = {"fit": FIT, "loop": LOOP}
MODELS = {
    "dense": """
    inputs = np.ones((4096, 32), "float32")
    hidden = [layers.Dense(256, activation="relu") for _ in range(3)]
    model = tf.keras.Sequential([tf.keras.Input((32,)), *hidden, layers.Dense(1), End()])
""",
    "conv": """
    inputs = np.ones((64, 32, 32, 3), "float32")
    model = tf.keras.Sequential([
        tf.keras.Input((32, 32, 3)),
        layers.Conv2D(32, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(),
        layers.Conv2D(32, 3, padding="same", activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.GlobalAveragePooling2D(), layers.Dense(1), End(),
    ])
""",
    "LSTM": """
    inputs = np.ones((256, 40, 16), "float32")
    model = tf.keras.Sequential([tf.keras.Input((40, 16)), layers.LSTM(64), layers.Dense(1), End()])
""",
    "attention": """
    inputs = np.ones((64, 64), "int32")
    entry = tf.keras.Input((64,), dtype="int32")
    words = layers.Embedding(1000, 64)(entry)
    seen = layers.MultiHeadAttention(4, 16, dropout=0.1)(words, words)
    words = layers.LayerNormalization()(words + layers.Dropout(0.1)(seen))
    seen = layers.Dense(64)(layers.Dense(256, activation="relu")(words))
    words = layers.LayerNormalization()(words + layers.Dropout(0.1)(seen))
    model = tf.keras.Model(entry, End()(layers.Dense(1)(layers.GlobalAveragePooling1D()(words))))
""",
}
STEPS = """
for _ in range(3):
    train()
print("EXAMPLES", len(inputs))
"""
PROFILED = """
tf.profiler.experimental.start("PROFILE")
train()
tf.profiler.experimental.stop()
print(inputs.nbytes + targets.nbytes)
"""


def program(name: str, way: str, devices: int) -> str:
    text = START.replace("MODEL", MODELS[name].strip("\n")) + WAYS[way] + STEPS
    return text.replace("DEVICES", str(devices)).replace("BEGINS", BEGINS)


def counted(text: str, devices: int, keras: int = 3) -> int:
    """Returns the bytes that a report says are kept, also where it does not know the number of examples."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(text)
        with Sandbox(ProgramSpec(("train.py",), Path(folder), keras=keras)) as sandbox:
            sandbox.files.restore(sandbox.files.initial)
            recording = sandbox.run(Role.WATCHED, devices)
    kept = recording.last(StepsCounted).activations
    (line,) = (each for each in recording.output.splitlines() if each.startswith("EXAMPLES"))
    return kept.fixed + kept.per_example * int(line.split()[1]) // devices


def measured(text: str, devices: int, keras: int = 3) -> tuple[int, int]:
    """Returns the bytes of the forward and of the backward pass in memory when gradients begin in the fourth step."""
    environment = os.environ | {
        "TF_CPU_ALLOCATOR_USE_BFC": "1",  # the allocator whose records the profiler has on CPUs, too
        "TF_NUM_INTEROP_THREADS": "1",  # operations in the same order each time
        "TF_USE_LEGACY_KERAS": "1" if keras == 2 else "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", text + PROFILED.replace("PROFILE", folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        (profile,) = Path(folder).rglob("*.xplane.pb")
        events = sorted(events_in(profile), key=lambda each: each[0])
    held = held_when_gradients_begin(events)
    backward = sum(size for operation, size in held if "gradient_tape" in operation)
    batch = int(done.stdout.split()[-1]) // devices
    return sum(size for _, size in held) - backward + batch, backward


Event = tuple[int, str, dict[str, Any]]


def events_in(profile: Path) -> Iterator[Event]:
    """Yields the time, the name and the values of each event."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(profile.read_bytes())
    for plane in space.planes:
        names = {key: each.name for key, each in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                time = line.timestamp_ns * 1000 + event.offset_ps
                values = {}
                for stat in event.stats:
                    kind = stat.WhichOneof("value")
                    value = getattr(stat, kind) if kind else None
                    values[names[stat.metadata_id]] = names[value] if kind == "ref_value" else value
                yield time, plane.event_metadata[event.metadata_id].name, values


def held_when_gradients_begin(events: list[Event]) -> list[tuple[str, int]]:
    """Returns the operation and the bytes of each allocation of the first replica that is not freed by then."""
    held: dict[int, tuple[str, int]] = {}
    for _, name, values in events:
        if name == "MemoryAllocation":
            operation = values.get("tf_op") or ""
            if operation and "replica_1" not in operation:
                held[values["addr"]] = operation, values["requested_bytes"]
        elif name == "MemoryDeallocation":
            held.pop(values["addr"], None)
        elif BEGINS in name and "replica_1" not in name:
            return list(held.values())
    raise SystemExit("the profile has no backward pass")


def main(keras: int = 3, only: str = "") -> None:
    print(f"{'':22}{'counted':>12}{'measured':>12}{'ratio':>7}{'backward':>12}")
    for name in MODELS:
        for way in WAYS:
            for devices in (1, 2):
                label = f"{name}, {way}, {devices}"
                if only not in label:
                    continue
                text = program(name, way, devices)
                kept = counted(text, devices, keras)
                forward, backward = measured(text, devices, keras)
                row = f"{kept:12,}{forward:12,}{kept / forward:7.2f}{backward:12,}"
                print(f"{label:22}{row}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
