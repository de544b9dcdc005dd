from pathlib import Path

import keras


def best_so_far(path, validation):
    """The loss of the best model that an earlier start of this job has left, if there is one."""
    if not Path(path).exists():
        return None
    return keras.models.load_model(path).evaluate(validation, verbose=0, return_dict=True)["loss"]


class Report(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        words = "  ".join(f"{name} {value:.4f}" for name, value in logs.items())
        print(f"epoch {epoch + 1}: {words}", flush=True)
