"""Several workers and parameter servers: real processes on loopback, each of which trains the model of a row."""

import json
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from ..items import BATCH, How, Item
from .place import (
    Measured,
    Place,
    Values,
    compile_model,
    fit,
    shares,
    targets,
    train_loop,
    weights_of,
)

SERVERS = "ParameterServerStrategy"
LIMIT = 90  # seconds for a cluster
EPOCHS = 2


def measure(item: Item, how: How, place: Place) -> Measured:
    if not place.replicas:
        return Measured(values_of(item, how, place))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return Measured(answers(item, how, place, Path(folder)))


def answers(item: Item, how: How, place: Place, folder: Path) -> Values:
    """Returns what the first task that computes has answered; raises RuntimeError with its message if it has raised."""
    (folder / "question").write_bytes(pickle.dumps((item, how, place.parts, place.keras_version)))
    jobs = jobs_of(item, place.replicas)
    first = next(iter(jobs)), 0
    with cluster(jobs, folder) as processes:
        answer: Values | str = wait_for(processes[first], folder / "answer")
    if isinstance(answer, str):
        raise RuntimeError(answer)
    return answer


def jobs_of(item: Item, workers: int) -> dict[str, int]:
    """Returns how many tasks of each job there are; one of the first job answers."""
    if item.name == SERVERS:
        return {"chief": 1, "worker": workers, "ps": 1}
    return {"worker": workers}


@contextmanager
def cluster(jobs: dict[str, int], folder: Path) -> Iterator[dict[tuple[str, int], Any]]:
    """Starts the processes, and ends them when the first has answered."""
    addresses = addresses_for(jobs)
    tasks = [(job, index) for job, count in jobs.items() for index in range(count)]
    processes = {task: start(addresses, task, folder) for task in tasks}
    try:
        yield processes
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def addresses_for(jobs: dict[str, int]) -> dict[str, list[str]]:
    """Returns addresses on loopback that nobody listens at, all different."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(sum(jobs.values()))]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        free = iter([f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners])
        return {job: [next(free) for _ in range(count)] for job, count in jobs.items()}


def start(addresses: dict[str, list[str]], task: tuple[str, int], folder: Path) -> Any:
    config = {"cluster": addresses, "task": {"type": task[0], "index": task[1]}}
    paths = [*sys.path, os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "TF_CONFIG": json.dumps(config),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "GRPC_VERBOSITY": "ERROR",
    }
    with open(folder / f"log-{task[0]}-{task[1]}", "w") as log:
        command = [sys.executable, "-m", f"{__package__}.worker", str(folder)]
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def wait_for(process: Any, file: Path) -> Any:
    """Returns what the process writes; raises an error if it ends without that, or does not end."""
    end = time.monotonic() + LIMIT
    while not file.exists():
        if process.poll() is not None and not file.exists():
            raise RuntimeError(f"the first task ended with status {process.returncode}")
        if time.monotonic() > end:
            raise TimeoutError(f"no answer of the first task within {LIMIT} seconds")
        time.sleep(0.05)
    return pickle.loads(file.read_bytes())


# In the process of a task


@dataclass(frozen=True)
class ClusterPlace(Place):
    """A place whose strategy is that of the cluster in TF_CONFIG."""

    name: str = ""

    @cached_property
    def strategy(self) -> Any:
        if self.name != SERVERS:
            return tf.distribute.MultiWorkerMirroredStrategy()
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        return tf.distribute.ParameterServerStrategy(resolver)

    def dataset(self, *arrays: Any) -> Any:
        """Returns the arrays as batches of which each worker takes its part."""
        return self.strategy.experimental_distribute_dataset(batched(self.rows, *arrays))


def batched(rows: int, *arrays: Any) -> Any:
    data = tf.data.Dataset.from_tensor_slices((*arrays, shares(rows))).batch(BATCH)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return data.with_options(options)


def values_of(item: Item, how: How, place: Place) -> Values:
    x, y = place.inputs(item), targets("numbers", place.rows)[:, :2]
    model = compiled(item, place)
    return METHODS[how](item, place, model, x, y)


def compiled(item: Item, place: Place) -> Any:
    keras = place.keras
    with place.scope():
        layer = item.options.get("layer")
        more = [getattr(keras.layers, layer)()] if layer else []
        model = keras.Sequential([keras.Input((6,)), *more, keras.layers.Dense(2)])
        compile_model(model, optimizer_of(item, keras), metrics=["mae"])
    return model


def optimizer_of(item: Item, keras: Any) -> Any:
    named = {"clipnorm": item.options["clipnorm"]} if "clipnorm" in item.options else {}
    return getattr(keras.optimizers, item.options.get("optimizer", "SGD"))(0.1, **named)


def fitted(item: Item, place: Place, model: Any, x: Any, y: Any) -> Values:
    named: dict[str, Any] = {"epochs": EPOCHS} | data_of(item, place, x, y)
    logs = fit(model, **named).history
    history = [np.asarray(logs[name]) for name in sorted(logs)]
    steps = int(model.optimizer.iterations.numpy())
    return {"weights": weights_of(place, model), "history": history, "steps": steps}


def evaluated(item: Item, place: Place, model: Any, x: Any, y: Any) -> Values:
    named = {"batch_size": BATCH} | data_of(item, place, x, y, "steps")
    return {"loss": np.asarray(model.evaluate(**named, verbose=0))}


def predicted(item: Item, place: Place, model: Any, x: Any, y: Any) -> Values:
    return {"outputs": np.asarray(model.predict(x, batch_size=BATCH, verbose=0))}


def data_of(
    item: Item, place: Place, x: Any, y: Any, steps: str = "steps_per_epoch"
) -> dict[str, Any]:
    """Returns the arguments that are the data; parameter servers need to be told the number of steps."""
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
    if item.name == SERVERS and isinstance(place, ClusterPlace):
        return {"x": data.repeat(), steps: place.steps(), "batch_size": None}
    if item.options.get("data") == "dataset":
        return {"x": data, "batch_size": None}
    return {"x": x, "y": y}


def looped(item: Item, place: Place, model: Any, x: Any, y: Any) -> Values:
    with place.strategy.scope():
        optimizer = optimizer_of(item, place.keras)
        optimizer.build(model.trainable_variables)
    if item.name == SERVERS and isinstance(place, ClusterPlace):
        coordinated(place, model, optimizer, x, y)
    else:
        train_loop(place, model, optimizer, place.dataset(x, y), EPOCHS)
    steps = int(optimizer.iterations.numpy())
    return {"weights": weights_of(place, model), "steps": steps}


def coordinated(place: ClusterPlace, model: Any, optimizer: Any, x: Any, y: Any) -> None:
    """Trains as `train_loop` does; the chief schedules each step and waits for it."""
    coordinator = tf.distribute.coordinator.ClusterCoordinator(place.strategy)

    def replica(x: Any, y: Any, share: Any) -> None:
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(model(x, training=True) - y), axis=-1)
            loss = tf.reduce_sum(error * share)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function  # type: ignore[untyped-decorator]
    def step(batches: Any) -> None:
        place.strategy.run(replica, args=next(batches))

    data = coordinator.create_per_worker_dataset(lambda: batched(place.rows, x, y).repeat())
    batches = iter(data)
    for _ in range(EPOCHS * place.steps()):
        coordinator.schedule(step, args=(batches,))
        coordinator.join()


METHODS = {How.FIT: fitted, How.EVALUATE: evaluated, How.PREDICT: predicted, How.LOOP: looped}
