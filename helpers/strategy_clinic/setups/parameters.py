"""Setup: the four parameters of every notebook, checked against the tables of their values."""

import ast
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..base.display import running_shell
from ..base.errors import Unavailable, UserError, choose
from . import formats, runtime, strategies

PARAMETERS = ("strategy", "devices", "save_format", "keras")


@dataclass(frozen=True)
class Setup:
    """What one run is asked to do; raises a UserError for a value that no table has."""

    strategy: str = "mirrored"
    devices: int = 2
    save_format: str = "keras"
    keras: int = 3

    def __post_init__(self) -> None:
        choose("strategy", self.strategy, strategies.TABLE)
        counts = strategies.TABLE[self.strategy].counts
        choose(f"devices (for {self.strategy})", self.devices, counts)
        choose("save_format", self.save_format, formats.TABLE)
        choose("keras", self.keras, runtime.KERAS_VERSIONS)

    def __str__(self) -> str:
        return f"{self.strategy} x{self.devices}, saved as {self.save_format}, Keras {self.keras}"

    def but(self, **changes: Any) -> "Setup":
        """Returns the same setup with some parameters changed."""
        return replace(self, **changes)

    @property
    def other_keras(self) -> int:
        return 5 - self.keras

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def require(self) -> None:
        """Raises Unavailable, with the reason, if this machine cannot run the strategy."""
        if reason := strategies.TABLE[self.strategy].missing():
            raise Unavailable(f"{self.strategy} is unavailable: {reason}.")


def build_strategy(setup: Setup) -> Any:
    """Returns the tf.distribute.Strategy that a setup names; raises Unavailable if it cannot run here."""
    setup.require()
    return strategies.TABLE[setup.strategy].build(setup.devices)


def choices() -> dict[str, list[Any]]:
    """Returns the values of each parameter that some setup has."""
    counts = {count for row in strategies.ROWS for count in row.counts}
    valid = (
        list(strategies.TABLE),
        sorted(counts),
        list(formats.TABLE),
        sorted(runtime.KERAS_VERSIONS),
    )
    return dict(zip(PARAMETERS, valid))


def prepare_kernel(setup: Setup, known: Sequence[str] = PARAMETERS) -> None:
    """Starts TensorFlow for a setup; raises a UserError for unknown parameters, or if Keras cannot be chosen any more."""
    # papermill only logs a parameter that the notebook does not have.
    cells = running_shell().user_ns.get("In", []) if running_shell() else []
    for cell in cells:
        for name in assigned(cell) if cell.startswith("# Parameters\n") else []:
            choose("parameter name", name, known)
    runtime.choose_keras(setup.keras)
    runtime.start_tensorflow()
    runtime.fix_keras_and_devices()


def assigned(cell: str) -> list[str]:
    """Returns the names that the assignments of a cell give values to."""
    assignments = [node for node in ast.parse(cell).body if isinstance(node, ast.Assign)]
    return [ast.unparse(assignment.targets[0]) for assignment in assignments]


def combinations(
    strategy_names: Iterable[str],
    counts: Iterable[int],
    format_names: Iterable[str],
    keras_versions: Iterable[int],
) -> tuple[list[Setup], list[str]]:
    """Returns every combination that is a setup, and one sentence for each that is none.

    Raises a UserError for a value that is part of no setup.
    """
    asked: list[list[Any]] = [*map(list, (strategy_names, counts, format_names, keras_versions))]
    setups: list[Setup] = []
    reasons: list[str] = []
    for values in itertools.product(*asked):
        try:
            setups.append(Setup(*values))
        except UserError as reason:
            reasons.append(str(reason))
    if not setups:
        raise UserError(reasons[0])
    for name, wanted in zip(PARAMETERS, asked):
        for value in wanted:
            if not any(getattr(setup, name) == value for setup in setups):
                choose(name, value, choices()[name])
                raise UserError(
                    f"{name} = {value!r} fits none of the other values that were asked for."
                )
    return setups, list(dict.fromkeys(reasons))
