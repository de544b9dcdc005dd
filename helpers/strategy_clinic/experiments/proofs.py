"""Experiments, and what one run of an experiment ends in: a proof by values, or an error."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..base.errors import UserError
from ..setups.parameters import Setup
from .checks import SilentFailure

# By label and variable, the devices on which an experiment has found copies of it.
Observations = dict[str, dict[str, list[str]]]


class Experiment(Protocol):
    """A function of a setup; a call runs its body in the process that the setup needs."""

    __name__: str
    body: Callable[[Setup], Any]

    def __call__(self, setup: Setup) -> Any: ...


@dataclass
class Proof:
    """Two lists of values that must be equal once a failure is repaired."""

    what: str
    got: list[Any]
    want: list[Any]
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        self.got, self.want = as_lists(self.got), as_lists(self.want)
        if not self.want:
            raise UserError(f"The proof that {self.what} compares no values: give it at least one.")

    @property
    def holds(self) -> bool:
        import numpy as np

        def equal(got: Any, want: Any) -> bool:
            got, want = np.asarray(got), np.asarray(want)
            return got.shape == want.shape and np.allclose(
                got, want, self.tolerance, self.tolerance
            )

        return len(self.got) == len(self.want) and all(map(equal, self.got, self.want))


def as_lists(values: Iterable[Any]) -> list[Any]:
    """Returns tensors and arrays as nested lists of numbers, which JSON can hold."""
    import numpy as np

    return [np.asarray(value).tolist() for value in values]


@dataclass
class Result:
    """The value or the error of one run; a proof that does not hold is a SilentFailure."""

    value: Any = None
    error: Exception | None = None
    observations: Observations = field(default_factory=dict)
    run: Any = None  # of a program: what it printed, and the line that raised

    def __post_init__(self) -> None:
        if isinstance(self.value, Proof) and not self.value.holds:
            self.error = SilentFailure(f"not so: {self.value.what}")

    def unwrap(self) -> Any:
        """Returns the value; raises the error if there is one."""
        if self.error is not None:
            raise self.error
        return self.value
