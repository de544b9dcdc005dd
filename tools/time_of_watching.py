"""What watching costs: `python tools/time_of_watching.py [REPETITIONS]` prints a table, and nothing is asserted.

Each program runs plain and watched in turn, several times, and the least of each counts: seconds of its loop, processor
seconds of its loop, which other work on the machine disturbs less, and seconds of the whole process. Then a whole
examination, from the command to the report; and what it costs to show what each replica holds, in processor seconds: of a
watched run that ends after the steps that are shown, and of a whole examination.
"""

import os
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.runs.inside import USUAL_STEPS, InsideSandbox
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.examiner.runs.sandbox import Sandbox

DEVICES, STEPS = 2, 300
START = f"""
    import time
    import numpy as np
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration() for _ in range({DEVICES})]
    tf.config.set_logical_device_configuration(cpu, parts)
    tf.keras.utils.set_random_seed(1)
    numbers = np.random.default_rng(0).normal(size=(32 * {STEPS}, 32)).astype("float32")
    targets = numbers[:, :1]
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        layers = [tf.keras.layers.Dense(64, activation="relu") for _ in range(3)]
        model = tf.keras.Sequential([tf.keras.Input((32,)), *layers, tf.keras.layers.Dense(1)])
        optimizer = tf.keras.optimizers.Adam(0.001)
        optimizer.build(model.trainable_variables)
"""
LOOP = """
    def step(batch, target):
        with tf.GradientTape() as tape:
            errors = tf.square(model(batch, training=True) - target)
            loss = tf.nn.compute_average_loss(errors, global_batch_size=32)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    WRAP
    def train(batch, target):
        return strategy.reduce("SUM", strategy.run(step, args=(batch, target)), axis=None)

    dataset = tf.data.Dataset.from_tensor_slices((numbers, targets)).batch(32)
    began = time.perf_counter(), time.process_time()
    for batch, target in strategy.experimental_distribute_dataset(dataset):
        loss = train(batch, target)
    print("LOOP", time.perf_counter() - began[0], time.process_time() - began[1], float(loss))
"""
FIT = """
    with strategy.scope():
        model.compile(optimizer, "mse", run_eagerly=EAGERLY)
    began = time.perf_counter(), time.process_time()
    model.fit(numbers, targets, batch_size=32, verbose=0, shuffle=False)
    print("LOOP", time.perf_counter() - began[0], time.process_time() - began[1], model.get_weights()[-1])
"""
PROGRAMS = {
    "custom loop, traced": START + LOOP.replace("WRAP", "@tf.function"),
    "custom loop, eager": START + LOOP.replace("WRAP", ""),
    "fit, traced": START + FIT.replace("EAGERLY", "False"),
    "fit, eager": START + FIT.replace("EAGERLY", "True"),
}
SHOWING = ("steps", "shown", "ratio", "examine", "--show", "ratio")
HEAD = ("loop", "watched", "ratio", "cpu", "watched", "ratio", "process", "watched", "ratio")


def timed(run, folder: str) -> tuple[list[float], str]:
    """Seconds of the loop, of processors in it, and of the process, and what it came to."""
    began = time.perf_counter()
    said = [each for each in run(Path(folder)).splitlines() if each.startswith("LOOP")][0]
    _, loop, processors, result = said.split(maxsplit=3)
    return [float(loop), float(processors), time.perf_counter() - began], result


def plain(folder: Path) -> str:
    environment = os.environ | {"MPLBACKEND": "Agg", "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, "train.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.stdout


def watched(folder: Path) -> str:
    with Sandbox(ProgramSpec(("train.py",), folder)) as sandbox:
        sandbox.files.restore(sandbox.files.initial)
        return sandbox.run(Role.WATCHED, DEVICES).output


def measured(text: str, repetitions: int) -> list[tuple[float, float]]:
    """The least of each, plain and watched. What they compute must be the same."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(textwrap.dedent(text))
        turns = [[timed(way, folder) for way in (plain, watched)] for _ in range(repetitions)]
    assert len({result for turn in turns for _, result in turn}) == 1, "the results differ"
    return [tuple(min(turn[way][0][i] for turn in turns) for way in (0, 1)) for i in range(3)]


def row(name: str, pairs: list[tuple[float, float]]) -> str:
    return f"{name:22}" + "".join(f"{a:9.2f}{b:9.2f}{b / a:9.2f}" for a, b in pairs)


def examination(text: str, *options: str) -> float:
    """Seconds from the command to the report."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(textwrap.dedent(text))
        places = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1] / "helpers")}
        began = time.perf_counter()
        command = [sys.executable, "-m", "strategy_clinic", "examine", *options, "train.py"]
        subprocess.run(command, cwd=folder, env=places, capture_output=True, check=True)
        return time.perf_counter() - began


def first_steps(text: str, shown: bool) -> None:
    """Runs a program for as many steps as are shown, watched by the examiner or so that they are shown."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(textwrap.dedent(text))
        program = ProgramSpec(("train.py",), Path(folder), steps=USUAL_STEPS)
        sandbox = InsideSandbox(program) if shown else Sandbox(program)
        with sandbox:
            sandbox.files.restore(sandbox.files.initial)
            assert sandbox.run(Role.WATCHED, DEVICES).outcome.value == "stopped"


def processor_seconds(run) -> float:
    """What the processes take that are started, and have ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cost_of_showing(text: str, repetitions: int) -> str:
    """The ratios, of the least of each."""
    ways = [
        lambda: first_steps(text, False),
        lambda: first_steps(text, True),
        lambda: examination(text),
        lambda: examination(text, "--show", "view.html"),
    ]
    turns = [[processor_seconds(way) for way in ways] for _ in range(repetitions)]
    watched, shown, examined, with_page = map(min, zip(*turns))
    return f"{watched:9.2f}{shown:9.2f}{shown / watched:9.2f}{examined:9.2f}{with_page:9.2f}{with_page / examined:9.2f}"


def main(repetitions: int = 3):
    print(f"{'':22}" + "".join(f"{each:>9}" for each in HEAD))
    for name, text in PROGRAMS.items():
        print(row(name, measured(text, repetitions)), flush=True)
    first = next(iter(PROGRAMS.values()))
    print(f"a whole examination of the first, two runs: {examination(first):.1f} s")
    print(f"{'':22}" + "".join(f"{each:>9}" for each in SHOWING))
    for name, text in PROGRAMS.items():
        print(f"{name:22}{cost_of_showing(text, repetitions)}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
