"""The process of one task of a cluster: it serves, or trains the model of a row and writes what that gives."""

import json
import os
import pickle
import sys
from pathlib import Path

from ...setups import runtime


def main(folder: Path) -> None:
    item, how, parts, keras = pickle.loads((folder / "question").read_bytes())
    runtime.choose_keras(keras)
    runtime.start_tensorflow()
    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    if "chief" in config["cluster"] and task["type"] != "chief":
        serve()
    from .workers import ClusterPlace, values_of

    try:
        place = ClusterPlace(keras, len(config["cluster"]["worker"]), parts, name=item.name)
        answer: object = values_of(item, how, place)
    except Exception as error:
        answer = f"{type(error).__name__}: {error}"
    if task["index"] == 0:
        write(folder / "answer", answer)
    os._exit(0)  # threads of a strategy may still wait


def write(file: Path, answer: object) -> None:
    """Writes a file that is whole as soon as it is there."""
    part = file.with_suffix(".part")
    part.write_bytes(pickle.dumps(answer))
    part.rename(file)


def serve() -> None:
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
    tf.distribute.Server(cluster, job, index, protocol="grpc").join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
