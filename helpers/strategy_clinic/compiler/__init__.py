"""What a TPU's compiler says of a traced step, without a TPU."""

from .programs import recorded
from .programs import show_compiled as show

__all__ = ["recorded", "show"]
