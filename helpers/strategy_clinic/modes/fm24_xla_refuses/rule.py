"""Blames, for fm24, the line that asks for XLA."""

import ast

from ...examiner.blame import call_in_files, keyword
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack


@blames("fm24")
def asked_for_xla(recording: Recording, stack: Stack) -> Stack:
    return call_in_files(stack, asks)


def asks(call: ast.Call) -> bool:
    value = keyword(call, "jit_compile")
    return isinstance(value, ast.Constant) and value.value is True
