"""Runs magics and shell lines of a notebook without IPython: `get_ipython()` in a program that was made of cells.

Runs in the program's process: standard library only, and Python 3.9's syntax.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import string
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

# At the end of a program's first line: it is run in an event loop, as a notebook is.
IN_A_LOOP = "  # runs in an event loop"
SHELL_COMMANDS = ("cat", "cp", "ll", "ls", "mkdir", "mv", "rm", "rmdir")  # that are magics, too
INTERPRETERS = ("bash", "perl", "python", "python2", "python3", "ruby", "script", "sh")
RUN_OPTIONS = "-i", "-n", "-e"
NAME_AFTER_DOLLAR = re.compile(r"\$(\$|[A-Za-z_]\w*)(?=(?:[^']*'[^']*')*[^']*$)")


class Lines(list[str]):
    """The output of a command, as IPython gives it: a list of lines, which are also one text."""

    @property
    def n(self) -> str:
        return "\n".join(self)

    @property
    def s(self) -> str:
        return " ".join(self)

    l = list_ = property(list)  # noqa: E741 # IPython's name
    nlstr, spstr = n, s


class Captured(io.StringIO):
    """What a cell prints, which is printed all the same."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(text)
        return super().write(text)

    def flush(self) -> None:
        self.stream.flush()


class Output:
    """What `%%capture NAME` gives: what the cell has printed so far."""

    outputs: tuple[Any, ...] = ()

    def __init__(self) -> None:
        self.streams = Captured(sys.stdout), Captured(sys.stderr)
        sys.stdout, sys.stderr = self.streams

    def end(self) -> None:
        sys.stdout, sys.stderr = (each.stream for each in self.streams)

    @property
    def stdout(self) -> str:
        return self.streams[0].getvalue()

    @property
    def stderr(self) -> str:
        return self.streams[1].getvalue()

    def show(self) -> None:
        print(self.stdout, end="")

    __call__ = show


class Shell:
    """Does what IPython's shell does for the lines of a program; what it does not know has no effect."""

    def __init__(self) -> None:
        self.folder_before = os.getcwd()

    @property
    def user_ns(self) -> dict[str, Any]:
        return vars(sys.modules["__main__"])

    def system(self, command: str) -> None:
        self.call(command, sys._getframe(1))

    def getoutput(self, command: str) -> Lines:
        return self.output_of(command, sys._getframe(1))

    def magic(self, line: str) -> Any:
        name, _, rest = line.lstrip("%").partition(" ")
        return self.line_magic(name, rest, sys._getframe(1))

    def run_line_magic(self, name: str, line: str) -> Any:
        return self.line_magic(name, line, sys._getframe(1))

    def line_magic(self, name: str, line: str, frame: FrameType) -> Any:
        if name in SHELL_COMMANDS:
            return self.call(f"{'ls -l' if name == 'll' else name} {line}", frame)
        action = LINE_MAGICS.get(name)
        return action and action(self, expanded(line.strip(), frame), frame)

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        if name in WRITES:
            write_file(expanded(line, sys._getframe(1)), cell)
        elif name in INTERPRETERS:
            run_script(name, expanded(line, sys._getframe(1)), cell)

    def begin_capture(self) -> Output:
        return Output()

    def call(self, command: str, frame: FrameType) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        status = subprocess.call(expanded(command, frame), shell=True, executable=shell_program())
        self.user_ns["_exit_code"] = status

    def output_of(self, command: str, frame: FrameType) -> Lines:
        done = subprocess.run(
            expanded(command, frame),
            shell=True,
            executable=shell_program(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.user_ns["_exit_code"] = done.returncode
        return Lines(done.stdout.decode(errors="replace").splitlines())

    def change_folder(self, line: str, _: FrameType) -> None:
        quiet, folder = line.startswith("-q"), line.removeprefix("-q").strip().strip("'\"")
        before = os.getcwd()
        try:
            os.chdir(self.folder_before if folder == "-" else os.path.expanduser(folder or "~"))
        except OSError as error:  # IPython goes on, too
            print(error)
            return
        self.folder_before = before
        if not quiet:
            print(os.getcwd())

    def environment(self, line: str, _: FrameType) -> Any:
        name, given, value = line.partition("=" if "=" in line else " ")
        if not line:
            return dict(os.environ)
        if not given:
            return os.environ.get(name)
        os.environ[name.strip()] = value.strip()
        print(f"env: {name.strip()}={value.strip()}")

    def run_file(self, line: str, frame: FrameType) -> None:
        """Runs a script in names of its own, or with `-i` in those of the notebook, which gets its names."""
        words = shlex.split(line)
        path, *arguments = [word for word in words if word not in RUN_OPTIONS]
        path = path if path.endswith(".py") else f"{path}.py"
        names = self.user_ns if "-i" in words else {"__name__": "__main__", "__file__": path}
        with open(path, "rb") as file:
            code = compile(file.read(), os.path.abspath(path), "exec", dont_inherit=True)
        sys.argv, before = [path, *arguments], sys.argv
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        with contextlib.suppress(SystemExit):
            exec(code, names)
        sys.argv = before
        hidden = ("__name__", "__file__", "__builtins__")
        self.user_ns.update({name: names[name] for name in names if name not in hidden})


LINE_MAGICS: dict[str, Callable[..., Any]] = {
    "cd": Shell.change_folder,
    "env": Shell.environment,
    "pwd": lambda shell, line, frame: os.getcwd(),
    "run": Shell.run_file,
    "set_env": Shell.environment,
    "sx": Shell.output_of,
    "system": Shell.output_of,
}
WRITES = ("file", "writefile")


def write_file(line: str, text: str) -> None:
    """Writes a cell to a file, or appends it."""
    words = shlex.split(line)
    append = "-a" in words or "--append" in words
    with open(os.path.expanduser(words[-1]), "a" if append else "w", encoding="utf-8") as file:
        file.write(text)


def run_script(name: str, line: str, text: str) -> None:
    """Gives a cell to a program as its input; raises an exception if that fails, unless the cell says otherwise."""
    words = shlex.split(line)
    check = "--no-raise-error" not in words
    words = [word for word in words if word != "--no-raise-error"]
    program = words if name == "script" else [name, *words]
    if program[0].startswith("python"):
        program[0] = sys.executable
    sys.stdout.flush()
    subprocess.run(program, input=text.encode(), check=check)


def shell_program() -> str | None:
    return os.environ.get("SHELL")


def expanded(text: str, frame: FrameType) -> str:
    """Returns a line with the values of `{expression}` and `$name`; as it is, if an expression cannot be evaluated."""
    names = {**frame.f_globals, **frame.f_locals}
    try:
        text = Expressions().vformat(text, (), names)
    except Exception:  # braces of another language
        return text
    return NAME_AFTER_DOLLAR.sub(
        lambda found: "$" if found[1] == "$" else str(names.get(found[1], found[0])), text
    )


class Expressions(string.Formatter):
    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, str]:
        return eval(field_name, dict(kwargs)), field_name


SHELL = Shell()


def get_ipython() -> Shell:
    return SHELL
