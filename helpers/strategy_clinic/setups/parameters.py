"""Setup: the four parameters that every notebook has, checked against the tables."""

import ast
import itertools
from dataclasses import asdict, dataclass, replace

from ..base.errors import UserError, choose
from . import formats, runtime, strategies, tensorflow_patches

PARAMETERS = ("strategy", "devices", "save_format", "keras")


@dataclass(frozen=True)
class Setup:
    """What one run is asked to do; a value that no table knows is refused with a sentence."""

    strategy: str = "mirrored"
    devices: int = 2
    save_format: str = "keras"
    keras: int = 3

    def __post_init__(self):
        choose("strategy", self.strategy, strategies.TABLE)
        choose(
            f"devices (for {self.strategy})", self.devices, strategies.TABLE[self.strategy].counts
        )
        choose("save_format", self.save_format, formats.TABLE)
        choose("keras", self.keras, runtime.GENERATIONS)
        choose(
            f"keras (for {self.save_format})",
            self.keras,
            formats.TABLE[self.save_format].generations,
        )

    def __str__(self):
        return f"{self.strategy} x{self.devices}, saved as {self.save_format}, Keras {self.keras}"

    def but(self, **changes):
        """The same setup with some parameters changed."""
        return replace(self, **changes)

    @property
    def other_keras(self) -> int:
        return 5 - self.keras

    def as_dict(self) -> dict:
        return asdict(self)


def choices() -> dict[str, list]:
    """What each parameter may be in one setup or another."""
    counts = {count for row in strategies.ROWS for count in row.counts}
    valid = list(strategies.TABLE), sorted(counts), list(formats.TABLE), sorted(runtime.GENERATIONS)
    return dict(zip(PARAMETERS, valid))


def enter(setup: Setup) -> Setup:
    """Makes this kernel ready for a setup: Keras generation chosen, TensorFlow started, parameter names checked."""
    for name in strays():
        choose("parameter name", name, PARAMETERS)
    runtime.choose_keras(setup.keras)
    runtime.start_tensorflow()
    runtime.settle()
    tensorflow_patches.cut_short()
    return setup


def strays() -> list[str]:
    """Names that papermill was asked to inject and that no notebook has; papermill itself only logs them."""
    try:
        from IPython import get_ipython
    except ImportError:
        return []
    cells = (get_ipython().user_ns if get_ipython() else {}).get("In", [])
    return [name for cell in cells if cell.startswith("# Parameters\n") for name in assigned(cell)]


def assigned(cell: str) -> list[str]:
    targets = [
        statement.targets[0]
        for statement in ast.parse(cell).body
        if isinstance(statement, ast.Assign)
    ]
    return [target.id for target in targets]


def combinations(
    strategy_names, counts, format_names, generations
) -> tuple[list[Setup], list[str]]:
    """Every combination that makes sense, and one sentence for each that does not.

    A value that suits no combination at all is a mistake, not a skip, and is refused.
    """
    kept, skipped = [], []
    for values in itertools.product(strategy_names, counts, format_names, generations):
        try:
            kept.append(Setup(*values))
        except UserError as reason:
            skipped.append(str(reason))
    if not kept:
        raise UserError(skipped[0])
    _check_used(kept, strategy_names, counts, format_names, generations)
    return kept, list(dict.fromkeys(skipped))


def _check_used(kept, *lists):
    for name, values in zip(PARAMETERS, lists):
        for value in values:
            if not any(getattr(setup, name) == value for setup in kept):
                _explain(name, value)


def _explain(name, value):
    choose(name, value, choices()[name])
    raise UserError(f"{name} = {value!r} fits none of the other values that were asked for.")
