"""What a run came to: a proof by values, or an error."""

from dataclasses import dataclass, field

from ..base.errors import UserError
from .checks import SilentFailure


@dataclass
class Proof:
    """Two things that must be equal once a failure is repaired. Values decide, not the absence of an exception."""

    what: str
    got: list
    want: list
    tolerance: float = 1e-6

    def __post_init__(self):
        self.got, self.want = as_lists(self.got), as_lists(self.want)
        if not self.want:
            raise UserError(f"The proof that {self.what} compares no values: give it at least one.")

    @property
    def holds(self) -> bool:
        import numpy as np

        pairs = [(np.asarray(got), np.asarray(want)) for got, want in zip(self.got, self.want)]
        same = [
            g.shape == w.shape and np.allclose(g, w, rtol=self.tolerance, atol=self.tolerance)
            for g, w in pairs
        ]
        return len(self.got) == len(self.want) and all(same)


def as_lists(values) -> list:
    """Nested lists of numbers, so that a proof can travel between processes as JSON."""
    import numpy as np

    return [np.asarray(value).tolist() for value in values]


@dataclass
class Result:
    """What one run of an experiment came to: a value or an error, and what it showed on the way.

    A proof that does not hold is a silent failure, whether or not a check has said so.
    """

    value: object = None
    error: Exception | None = None
    seen: dict = field(default_factory=dict)

    def __post_init__(self):
        if isinstance(self.value, Proof) and not self.value.holds:
            self.error = SilentFailure(f"not so: {self.value.what}")

    def unwrap(self):
        if self.error is not None:
            raise self.error
        return self.value
