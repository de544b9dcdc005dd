"""The ways to put a model into a file and to take it out again: one row each, with what survives."""

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def save_keras(model, folder: Path):
    model.save(folder / "model.keras")


def load_keras(folder: Path, make_model):
    import tensorflow as tf

    return tf.keras.models.load_model(folder / "model.keras")


def save_h5(model, folder: Path):
    model.save(folder / "model.h5")


def load_h5(folder: Path, make_model):
    import tensorflow as tf

    return tf.keras.models.load_model(folder / "model.h5")


def save_weights_h5(model, folder: Path):
    model.save_weights(str(folder / "model.weights.h5"))


def load_weights_h5(folder: Path, make_model):
    model = make_model()
    model.load_weights(str(folder / "model.weights.h5"))
    return model


def save_checkpoint(model, folder: Path):
    import tensorflow as tf

    tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(str(folder / "checkpoint"))


def load_checkpoint(folder: Path, make_model):
    import tensorflow as tf

    model = make_model()
    restored = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    restored.restore(tf.train.latest_checkpoint(str(folder))).assert_existing_objects_matched()
    return model


def save_saved_model(model, folder: Path):
    with contextlib.redirect_stdout(
        io.StringIO()
    ):  # Keras 3 prints the endpoints, Keras 2 has no option to be quiet
        model.export(str(folder / "saved_model"))


def load_saved_model(folder: Path, make_model):
    import tensorflow as tf

    return tf.saved_model.load(str(folder / "saved_model"))


def save_npz(model, folder: Path):
    import numpy as np

    (folder / "model.json").write_text(model.to_json())
    np.savez(folder / "weights.npz", *model.get_weights())


def load_npz(folder: Path, make_model):
    """The configuration and the arrays; pickled objects are refused, since loading one runs code from the file."""
    import numpy as np
    import tensorflow as tf

    model = tf.keras.models.model_from_json((folder / "model.json").read_text())
    with np.load(folder / "weights.npz", allow_pickle=False) as arrays:
        model.set_weights([arrays[name] for name in arrays.files])
    return model


BOTH = (2, 3)


@dataclass(frozen=True)
class Row:
    name: str
    save: Callable
    load: Callable
    keeps: dict[str, tuple[int, ...]]  # each part that comes back, and in which Keras generations
    generations: tuple[int, ...]
    about: str


ROWS = (
    Row(
        "keras",
        save_keras,
        load_keras,
        {"architecture": BOTH, "weights": BOTH, "optimizer": BOTH},
        BOTH,
        "model.save('m.keras')",
    ),
    Row(
        "h5",
        save_h5,
        load_h5,
        # Keras 3 brings back the step counter without the slots, and the next step raises "Unknown variable".
        {"architecture": BOTH, "weights": BOTH, "optimizer": (2,)},
        BOTH,
        "model.save('m.h5')",
    ),
    Row(
        "weights_h5",
        save_weights_h5,
        load_weights_h5,
        {"weights": BOTH, "optimizer": BOTH},
        BOTH,
        "model.save_weights; the optimizer only into a built one",
    ),
    Row(
        "checkpoint",
        save_checkpoint,
        load_checkpoint,
        {"weights": BOTH, "optimizer": BOTH},
        BOTH,
        "tf.train.Checkpoint",
    ),
    Row(
        "saved_model",
        save_saved_model,
        load_saved_model,
        {"weights": BOTH},
        BOTH,
        "model.export('folder'), a graph to call",
    ),
    Row(
        "npz",
        save_npz,
        load_npz,
        {"architecture": BOTH, "weights": BOTH},
        BOTH,
        "config as JSON, arrays in one .npz",
    ),
)
TABLE = {row.name: row for row in ROWS}


def save(model, folder, name: str):
    """Writes the model into the folder in the format that the row `name` describes."""
    TABLE[name].save(model, Path(folder))


def load(folder, name: str, make_model):
    """What the format brings back; `make_model` builds the architecture where the file does not hold it."""
    return TABLE[name].load(Path(folder), make_model)


def keeps(name: str, part: str, keras: int) -> bool:
    return keras in TABLE[name].keeps.get(part, ())


def kept(row: Row) -> str:
    """In words, with the Keras generation where it is not all of them."""
    words = [
        part if among == row.generations else f"{part} (Keras {', '.join(map(str, among))})"
        for part, among in row.keeps.items()
    ]
    return ", ".join(words)
