"""The environment variables that TensorFlow reads when it is imported; imports nothing, since each kernel waits for it."""

TENSORFLOW_START = {
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",  # else the first of several processes takes the whole GPU
}
