"""The environment variables that TensorFlow reads when it is imported; imports little, since each kernel waits for it."""

import re

TENSORFLOW_START = {
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",  # else the first of several processes takes the whole GPU
}

# Variables that libraries read when they are imported, and those of them that are read later.
_READ_AT_IMPORT = re.compile("(CUDA|GRPC|KERAS|LD|MKL|OMP|OPENBLAS|TF|XLA)_|MPL|PYTHON")
_READ_LATER = ("PYTHONPATH", "TF_CONFIG")


def is_read_at_import(name: str) -> bool:
    return bool(_READ_AT_IMPORT.match(name)) and name not in _READ_LATER
