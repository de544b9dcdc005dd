"""The formats in which a model is saved and loaded: one row each, with what comes back."""

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Save = Callable[[Any, Path], None]
Load = Callable[[Path, Callable[[], Any]], Any]


def model_file(name: str) -> tuple[Save, Load]:
    """Returns how a whole model is saved in a file of this name, and how it is loaded."""

    def save_model(model: Any, folder: Path) -> None:
        model.save(folder / name)

    def load_model(folder: Path, make_model: Callable[[], Any]) -> Any:
        import tensorflow as tf

        return tf.keras.models.load_model(folder / name)

    return save_model, load_model


def save_weights_h5(model: Any, folder: Path) -> None:
    model.save_weights(str(folder / "model.weights.h5"))


def load_weights_h5(folder: Path, make_model: Callable[[], Any]) -> Any:
    model = make_model()
    model.load_weights(str(folder / "model.weights.h5"))
    return model


def save_checkpoint(model: Any, folder: Path) -> None:
    import tensorflow as tf

    tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(str(folder / "checkpoint"))


def load_checkpoint(folder: Path, make_model: Callable[[], Any]) -> Any:
    import tensorflow as tf

    model = make_model()
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    checkpoint.restore(tf.train.latest_checkpoint(str(folder))).assert_existing_objects_matched()
    return model


def save_saved_model(model: Any, folder: Path) -> None:
    # Keras 3 prints the endpoints; Keras 2 has no option that keeps it quiet.
    with contextlib.redirect_stdout(io.StringIO()):
        model.export(str(folder / "saved_model"))


def load_saved_model(folder: Path, make_model: Callable[[], Any]) -> Any:
    import tensorflow as tf

    return tf.saved_model.load(str(folder / "saved_model"))


def save_npz(model: Any, folder: Path) -> None:
    import numpy as np

    (folder / "model.json").write_text(model.to_json())
    np.savez(folder / "weights.npz", *model.get_weights())


def load_npz(folder: Path, make_model: Callable[[], Any]) -> Any:
    """Returns the model from its configuration and arrays. Pickled objects are refused: loading one runs its code."""
    import numpy as np
    import tensorflow as tf

    model = tf.keras.models.model_from_json((folder / "model.json").read_text())
    with np.load(folder / "weights.npz", allow_pickle=False) as arrays:
        model.set_weights([arrays[name] for name in arrays.files])
    return model


BOTH: tuple[int, ...] = (2, 3)
WEIGHTS = {"weights": BOTH}
STATE = WEIGHTS | {"optimizer": BOTH}
MODEL = {"architecture": BOTH} | WEIGHTS


@dataclass(frozen=True)
class Row:
    """One format: functions that save and load, and the lines with which a program saves `{model}` and loads `{loaded}`."""

    name: str
    saving: tuple[str, ...]
    loading: tuple[str, ...]
    save: Save
    load: Load
    keeps: dict[str, tuple[int, ...]]  # each part that comes back, and in which Keras generations
    about: str

    @property
    def keeps_in_words(self) -> str:
        words = [
            part if among == BOTH else f"{part} (Keras {', '.join(map(str, among))})"
            for part, among in self.keeps.items()
        ]
        return ", ".join(words)


ROWS = (
    Row(
        "keras",
        ('{model}.save("model.keras")',),
        ('{loaded} = tf.keras.models.load_model("model.keras")',),
        *model_file("model.keras"),
        MODEL | {"optimizer": BOTH},
        "model.save('m.keras')",
    ),
    # Keras 3 restores the step counter without the slots, and the next step raises "Unknown variable".
    Row(
        "h5",
        ('{model}.save("model.h5")',),
        ('{loaded} = tf.keras.models.load_model("model.h5")',),
        *model_file("model.h5"),
        MODEL | {"optimizer": (2,)},
        "model.save('m.h5')",
    ),
    Row(
        "weights_h5",
        ('{model}.save_weights("model.weights.h5")',),
        ("{loaded} = make_model()", '{loaded}.load_weights("model.weights.h5")'),
        save_weights_h5,
        load_weights_h5,
        STATE,
        "model.save_weights; the optimizer only into a built one",
    ),
    Row(
        "checkpoint",
        ('tf.train.Checkpoint(model={model}).save("saved/checkpoint")',),
        (
            "{loaded} = make_model()",
            'tf.train.Checkpoint(model={loaded}).restore(tf.train.latest_checkpoint("saved"))',
        ),
        save_checkpoint,
        load_checkpoint,
        STATE,
        "tf.train.Checkpoint",
    ),
    Row(
        "saved_model",
        ('{model}.export("saved_model")',),
        ('{loaded} = tf.saved_model.load("saved_model")',),
        save_saved_model,
        load_saved_model,
        WEIGHTS,
        "model.export('folder'), a graph to call",
    ),
    Row(
        "npz",
        ('np.savez("weights.npz", *{model}.get_weights())',),
        (
            "{loaded} = make_model()",
            '{loaded}.set_weights(list(np.load("weights.npz").values()))',
        ),
        save_npz,
        load_npz,
        MODEL,
        "config as JSON, arrays in one .npz",
    ),
)
TABLE = {row.name: row for row in ROWS}


def save(model: Any, folder: str | Path, name: str) -> None:
    """Writes the model into the folder in the format of this name."""
    TABLE[name].save(model, Path(folder))


def load(folder: str | Path, name: str, make_model: Callable[[], Any]) -> Any:
    """Returns what the format brings back; `make_model` builds the architecture where the file does not hold it."""
    return TABLE[name].load(Path(folder), make_model)


def keeps(name: str, part: str, keras: int) -> bool:
    """Returns whether a format brings back a part of the model under this Keras generation."""
    return keras in TABLE[name].keeps.get(part, ())
