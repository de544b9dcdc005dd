"""The formats in which a model is saved and loaded: one row each, with what comes back."""

from dataclasses import dataclass

BOTH: tuple[int, ...] = (2, 3)
WEIGHTS = {"weights": BOTH}
STATE = WEIGHTS | {"optimizer": BOTH}
MODEL = {"architecture": BOTH} | WEIGHTS


@dataclass(frozen=True)
class Row:
    """One format: the lines with which a program saves `{model}` and loads `{loaded}`."""

    name: str
    saving: tuple[str, ...]
    loading: tuple[str, ...]
    keeps: dict[str, tuple[int, ...]]  # each part that comes back, and in which versions of Keras
    about: str
    path: str  # what a program gives to a call that reads it

    @property
    def opening(self) -> tuple[str, ...]:
        """Returns the line that takes it for a whole model, which not every format is."""
        return (f"{{loaded}} = tf.keras.models.load_model({self.path})",)

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
        MODEL | {"optimizer": BOTH},
        "model.save('m.keras')",
        '"model.keras"',
    ),
    # Keras 3 restores the step counter without the slots, and the next step raises "Unknown variable".
    Row(
        "h5",
        ('{model}.save("model.h5")',),
        ('{loaded} = tf.keras.models.load_model("model.h5")',),
        MODEL | {"optimizer": (2,)},
        "model.save('m.h5')",
        '"model.h5"',
    ),
    Row(
        "weights_h5",
        ('{model}.save_weights("model.weights.h5")',),
        ("{loaded} = make_model()", '{loaded}.load_weights("model.weights.h5")'),
        STATE,
        "model.save_weights; the optimizer only into a built one",
        '"model.weights.h5"',
    ),
    Row(
        "checkpoint",
        ('tf.train.Checkpoint(model={model}).save("saved/checkpoint")',),
        (
            "{loaded} = make_model()",
            'tf.train.Checkpoint(model={loaded}).restore(tf.train.latest_checkpoint("saved"))',
        ),
        STATE,
        "tf.train.Checkpoint",
        'tf.train.latest_checkpoint("saved")',
    ),
    Row(
        "saved_model",
        ('{model}.export("saved_model")',),
        ('{loaded} = tf.saved_model.load("saved_model")',),
        WEIGHTS,
        "model.export('folder'), a graph to call",
        '"saved_model"',
    ),
    Row(
        "npz",
        ('np.savez("weights.npz", *{model}.get_weights())',),
        (
            "{loaded} = make_model()",
            '{loaded}.set_weights(list(np.load("weights.npz").values()))',
        ),
        WEIGHTS,
        "numpy.savez of model.get_weights()",
        '"weights.npz"',
    ),
)
TABLE = {row.name: row for row in ROWS}


def keeps(name: str, part: str, keras: int) -> bool:
    """Returns whether a format brings back a part of the model under this version of Keras."""
    return keras in TABLE[name].keeps.get(part, ())
