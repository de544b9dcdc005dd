"""The texts of a mode's programs: their marked lines, and what the repaired one has in common with the broken one."""

import ast

SUBJECTS = ("broken", "fixed", "exercise", "solution")  # the programs of a mode
WRONG, FIXED = (
    "# wrong",
    "# fixed",
)  # how comments begin: on each line that fails, and on each that repairs it
LONGEST = 20  # lines of code of a program, without those that make devices
DEVICE_LINES = ("cpu = tf.config.", "tf.config.set_logical_device_configuration(cpu,")
# What a page shows beside lines that make devices of the CPU; the files of the programs do not have it.
ON_GPUS = {
    'cpu = tf.config.list_physical_devices("CPU")[0]': "MirroredStrategy() replaces 3 lines",
    'names = [device.name for device in tf.config.list_logical_devices("CPU")]': 'only this line, "GPU"',
}
NOTES = {line: f"{line}  # on GPUs: {words}" for line, words in ON_GPUS.items()}


def marked_lines(text: str, mark: str) -> list[int]:
    """Returns the numbers of the lines that have this mark."""
    return [number for number, line in enumerate(text.splitlines(), 1) if mark in line]


def code_lines(text: str) -> list[str]:
    """Returns the lines of code that a reader has to read: no comments, no blank lines, none that make devices."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", *DEVICE_LINES))]


def with_notes(text: str) -> str:
    """Returns a program that makes devices of the CPU with a comment that says what to write on GPUs."""
    return "\n".join(NOTES.get(line, line) for line in text.split("\n"))


def without_notes(text: str) -> str:
    lines = {noted: line for line, noted in NOTES.items()}
    return "\n".join(lines.get(line, line) for line in text.split("\n"))


def problems(broken: str, fixed: str) -> list[str]:
    """Returns a sentence for each way in which two programs are not one program and its repair."""
    found = []
    for name, text, mark in (("broken.py", broken, WRONG), ("fixed.py", fixed, FIXED)):
        ast.parse(text)
        if len(code_lines(text)) > LONGEST:
            found.append(f"{name} has {len(code_lines(text))} lines of code, more than {LONGEST}")
        if not marked_lines(text, mark):
            found.append(f"{name} has no line marked {mark!r}")
    kept = [line.strip() for line in broken.splitlines() if WRONG not in line and line.strip()]
    lines = [line for line in fixed.splitlines() if line.strip()]
    codes = [line.split(f"  {FIXED}")[0].strip() for line in lines]  # of which some have moved
    if missing := first_missing(kept, codes):
        found.append(f"fixed.py lacks {missing!r} of broken.py, which is not marked {WRONG!r}")
    same = [line.strip() for line in lines if FIXED not in line]
    if added := first_missing(same, kept):
        found.append(f"fixed.py has {added!r}, which broken.py has not, and it is not marked")
    return found


def first_missing(lines: list[str], others: list[str]) -> str:
    """Returns the first line that is not among the others, in their order; "" if all are."""
    left = iter(others)
    return next((line for line in lines if line not in left), "")
