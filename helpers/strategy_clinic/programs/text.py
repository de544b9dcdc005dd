"""The texts of a mode's programs: their marked lines, and what the repaired one has in common with the broken one."""

import ast

WRONG, FIXED = (
    "# wrong",
    "# fixed",
)  # how comments begin: on each line that fails, and on each that repairs it
LONGEST = 20  # lines of code of a program, without those that make devices
DEVICE_LINES = ("cpu = tf.config.", "tf.config.set_logical_device_configuration(cpu,")


def marked_lines(text: str, mark: str) -> list[int]:
    """Returns the numbers of the lines that have this mark."""
    return [number for number, line in enumerate(text.splitlines(), 1) if mark in line]


def code_lines(text: str) -> list[str]:
    """Returns the lines of code that a reader has to read: no comments, no blank lines, none that make devices."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", *DEVICE_LINES))]


def problems(broken: str, fixed: str) -> list[str]:
    """Returns a sentence for each way in which two programs are not one program and its repair."""
    found = []
    for name, text, mark in (("broken.py", broken, WRONG), ("fixed.py", fixed, FIXED)):
        ast.parse(text)
        if len(code_lines(text)) > LONGEST:
            found.append(f"{name} has {len(code_lines(text))} lines of code, more than {LONGEST}")
        if not marked_lines(text, mark):
            found.append(f"{name} has no line marked {mark!r}")
    kept = [line for line in broken.splitlines() if WRONG not in line and line.strip()]
    same = [line for line in fixed.splitlines() if FIXED not in line and line.strip()]
    for old, new in zip(kept, same):
        if old != new:
            found.append(f"fixed.py has {new!r} in place of {old!r}, and it is not marked")
            break
    if len(kept) != len(same):
        found.append("broken.py and fixed.py differ in lines that are not marked")
    return found
