"""Blames, for fm24, the line that asks for XLA."""

from ...examiner.blame import call_in_files, is_constant, keyword
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack


@blames("fm24")
def asked_for_xla(recording: Recording, stack: Stack) -> Stack:
    return call_in_files(stack, lambda call: is_constant(keyword(call, "jit_compile"), True))
