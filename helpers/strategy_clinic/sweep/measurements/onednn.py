"""A process with oneDNN, which the other cells do without: the shape of what a convolution gives of the last part of a batch."""

import json
import os
import subprocess
import sys

ONEDNN = "TF_ENABLE_ONEDNN_OPTS"  # read when TensorFlow starts


def shape_of_the_last_part(replicas: int, parts: str, onednn: bool) -> list[int]:
    """Returns the shape without the number of rows, of the last replica; raises RuntimeError if the process fails."""
    command = [sys.executable, "-m", __name__, str(replicas), parts]
    paths = [*sys.path, os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        ONEDNN: str(int(onednn)),
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError("\n".join(done.stderr.splitlines()[-1:]))
    return list(json.loads(done.stdout.splitlines()[-1]))


def main(replicas: int, parts: str) -> None:
    from ...setups import runtime
    from ..devices import split_cpu

    runtime.choose_keras(3)
    runtime.start_tensorflow()
    split_cpu(replicas)
    from ..items import Parts
    from .place import SHAPES, Place, inputs

    place = Place(3, replicas, Parts(parts))
    with place.scope():
        # A bias would raise where the shape is wrong.
        layer = place.keras.layers.Conv2D(4, 3, use_bias=False)
        layer.build((None, *SHAPES["images"]))
    *_, last = place.dataset(inputs("images", place.rows))
    outputs = place.strategy.run(lambda batch, _: layer(batch), last)
    print(json.dumps(list(place.copies(outputs)[-1].shape[1:])))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
