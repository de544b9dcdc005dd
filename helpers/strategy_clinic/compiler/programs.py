"""Asks the TPU compiler about the steps of notebooks: TensorFlow lowers a step here, and the compiler in libtpu takes it.

Nothing is executed and no TPU is needed. The compiler is an optional extra of 586 MB; without it one sentence says how to get
it, and what another machine has recorded is shown as recorded.
"""

import contextlib
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat

from ..base.display import report, reported, say
from ..base.errors import Unavailable, UserError, choose
from ..base.files import write_whole
from ..base.json_lines import line_by_line
from ..base.package_versions import distribution_version
from ..modes.failure_mode import FailureMode
from ..processes import notebook_job, request_reply
from ..programs import child
from ..programs.error_text import without_names
from ..programs.switches import for_setup
from ..records import measure, store
from ..rendering.mode_notebooks import ModeNotebook
from ..setups import runtime, tpu
from ..setups.described_tpu import describe_tpu
from ..setups.parameters import Setup
from .lowering import lowered

USUAL = "v5e-8"
INSTALL = "pip install -c requirements.lock -e '.[compile]'"
COMPILER = Path(__file__).with_name("libtpu.py")
COMPILING = 300  # seconds for one program
MEMORY_PARTS = ("generated_code", "argument", "output", "temp", "alias", "peak")
# libtpu reads these instead of asking the machine, which is no TPU host, what it has.
NO_HOST = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1",
    "TPU_HOST_BOUNDS": "1,1,1",
}


@dataclass(frozen=True)
class Answer:
    """The outcome of a compilation in a verdict's words, in whose words `says` is, and what the program takes."""

    outcome: str
    by: str
    says: str
    evidence: str = "compiled"
    replicas: int = 1
    partitions: int = 1
    spmd: bool = False
    memory: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Line(Answer):
    """The answer about one program of a mode, for one kind of TPU."""

    mode: str
    subject: str
    tpu: str

    def __str__(self) -> str:
        """One line for a reader, without seconds, which differ from run to run."""
        head = f"{self.mode.upper()} {self.subject} on {self.tpu} ({self.evidence})"
        if self.outcome != "works":
            return f"{head} | {self.outcome}, says {self.by}: {self.says}"
        replicas = f"{self.replicas} replica" + "s" * (self.replicas != 1)
        return f"{head} | compiles for {replicas}, {self.megabytes:.1f} MB of HBM"

    @property
    def megabytes(self) -> float:
        """What a core holds at once: the program, and the most of its input, output and temporary values."""
        size = {name: self.memory.get(name, 0) for name in MEMORY_PARTS}
        values = size["argument"] + size["output"] + size["temp"] - size["alias"]
        return (size["generated_code"] + max(values, size["peak"])) / 1e6


def not_installed() -> str:
    """Returns a sentence that says how to install the compiler, or nothing where it is installed."""
    if importlib.util.find_spec("libtpu"):
        return ""
    return f"the TPU compiler is not installed (Linux on x86-64, 586 MB); run: {INSTALL}"


# One program


def of_function(function: Callable[..., Any], *arguments: Any, name: str = USUAL) -> Answer:
    """Compiles a plain function for one core of a TPU."""
    import tensorflow as tf

    traced = tf.function(function, jit_compile=True)

    def lower() -> bytes:
        program: bytes = traced.experimental_get_compiler_ir(*arguments)(stage="hlo_serialized")
        return program

    return answer_to(lower, name)


def of_step(strategy: Any, program: Any) -> Answer:
    """Compiles a step that EmulatedTPUStrategy has traced, for all of its replicas."""
    shape = {
        "replicas": strategy.num_replicas_in_sync,
        "partitions": strategy.parts,
        "spmd": strategy.spmd,
    }
    return answer_to(lambda: lowered(program), strategy.described, **shape)


def answer_to(lower: Callable[[], bytes], name: str, **shape: Any) -> Answer:
    try:
        program = lower()
    except Unavailable as reason:
        return Answer("unavailable", "the clinic", str(reason))
    except Exception as error:  # of several classes: TensorFlow does not lower it, and says why
        return Answer("raises", "TensorFlow", first_sentence(str(error)))
    if not_installed():
        return Answer("unavailable", "the clinic", not_installed())
    shape = {"replicas": 1, "partitions": 1, "spmd": False} | shape
    topology = tpu.TPUS[choose("TPU", name, tpu.TPUS)].topology
    return compile_apart(program, {"topology": topology, **shape}, **shape)


def first_sentence(message: str) -> str:
    """Returns what a compiler says first, without the names and attributes of instructions."""
    first = message.strip().removeprefix("Failed getting HLO text: '").split("\n")[0]
    return re.sub(r"%\S+ = |, \w+=.*| HLO module: .*", "", without_names(first))


def compile_apart(program: bytes, request: dict[str, Any], **shape: Any) -> Answer:
    """Compiles in a process of its own, which may die or be stopped."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "program.hlo").write_bytes(program)
        (folder / "request.json").write_text(json.dumps(request))
        try:
            reply = reply_of_compiler(folder)
        except TimeoutError:
            outcome, reply = "hangs", {"refused": f"no answer within {COMPILING} seconds"}
        except ChildProcessError as error:
            outcome, reply = "crashes", {"refused": str(error)}
        else:
            outcome = "raises" if "refused" in reply else "works"
    says = first_sentence(reply.pop("refused", ""))
    return Answer(outcome, "the TPU compiler", says, **shape, **reply)


def reply_of_compiler(folder: Path) -> dict[str, Any]:
    deadline, log = time.monotonic() + COMPILING, folder / "log"
    with open(log, "w") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", str(COMPILER), str(folder)],
            env=os.environ | NO_HOST,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            text=True,
        )
    try:
        reply: dict[str, Any] = request_reply.wait_for_answer(
            process, folder / "answer.json", deadline, log, "the compiler's process"
        )
        return reply
    finally:
        request_reply.end(process)


# The programs of a notebook


def compile_lines(
    mode: FailureMode, subjects: Mapping[str, Any], setup: Setup, names: list[str]
) -> list[Line]:
    """Compiles every program for every TPU: what its text or a function of a setup traces, or a function with arguments."""
    lines = []
    for name in names:
        for subject, program in subjects.items():
            if isinstance(program, tuple):
                function, *arguments = program
                answers = [of_function(function, *arguments, name=name)]
            else:
                run = functools.partial(run_program if isinstance(program, str) else call, program)
                answers = of_steps(run, setup.but(strategy="tpu_traced", devices=8), name)
            lines += [
                Line(mode=mode.id, subject=subject, tpu=name, **asdict(answer))
                for answer in answers
            ]
    return lines


def of_steps(run: Callable[[Setup], str], setup: Setup, name: str) -> list[Answer]:
    """Compiles the steps that a run traces for a TPU, whether or not the run then fails with a message."""
    with tpu.watched(name) as steps:
        message = run(setup)
        if steps:  # the compiler is asked about what was traced before a failure
            return [of_step(*each) for each in steps]
    if message:
        return [Answer("raises", "TPUStrategy", first_sentence(message), "traced")]
    return [Answer("unavailable", "the clinic", "it runs no step on a TPU")]


def call(function: Callable[[Setup], object], setup: Setup) -> str:
    """Calls a function of a setup and returns the message of its error, or ""."""
    try:
        function(setup)
    except Exception as error:
        return str(error)
    return ""


def run_program(text: str, setup: Setup) -> str:
    """Runs the text of a program in this process, with a described TPU, and returns the message of its error, or ""."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.ExitStack() as restored,
    ):

        def replaced(owner: Any, name: str, value: Any) -> None:
            restored.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)

        describe_tpu(replaced, runtime.MOST_DEVICES)
        error = child.run(for_setup(text, setup), [])["error"]
    return str(error["message"]) if error else ""


# The record, shown where the compiler is not installed


@dataclass(frozen=True)
class CompilerRecord:
    """What a compiler has said of modes, and of which code of their notebooks."""

    compiler: str
    versions: dict[str, str]
    modes: dict[str, dict[str, str]]
    lines: list[Line]

    def of(self, mode: FailureMode, name: str) -> list[Line]:
        return [line for line in self.lines if (line.mode, line.tpu) == (mode.id, name)]


def stored() -> CompilerRecord:
    path = store.record_file("compiled")
    if not path.exists():
        return CompilerRecord("", {}, {}, [])
    values = json.loads(path.read_text())
    return CompilerRecord(**values | {"lines": [Line(**line) for line in values["lines"]]})


def recorded(mode: FailureMode, name: str = USUAL) -> dict[str, str]:
    """Returns the recorded outcome of each subject of a mode."""
    return {line.subject: line.outcome for line in stored().of(mode, name)}


def show_compiled(
    mode: FailureMode, subjects: Mapping[str, Any], setup: Setup, name: str = USUAL
) -> None:
    """Shows what the compiler says, or, where it is not installed, how to install it and what is recorded."""
    if not not_installed():
        for line in compile_lines(mode, subjects, setup, [name]):
            report(str(line), compiled=asdict(line))
        return
    print(f"Not compiled here: {not_installed()}")
    record = stored()
    for line in record.of(mode, name):
        print(replace(line, evidence=f"recorded with {record.compiler}"))


def compile_modes(
    chosen: list[ModeNotebook], names: list[str], keras: int, tell: Callable[[str], None] = say
) -> None:
    """Compiles the steps of notebooks, and records those that a notebook shows.

    Raises UserError where the compiler is not installed, and for a notebook that fails.
    """
    names = [choose("TPU", name, tpu.TPUS) for name in names]
    if not_installed():
        raise UserError(not_installed())
    for wanted in chosen:
        lines = compiled_lines(wanted, names, keras)
        for line in lines:
            tell(f"{line} in {line.seconds:.1f} s" if line.seconds else str(line))
        if keras == 3 and "COMPILED" in wanted.path.read_text():
            write_lines(wanted, lines)


def compiled_lines(wanted: ModeNotebook, names: list[str], keras: int) -> list[Line]:
    """Runs a notebook with one more cell, which compiles its steps."""
    code = (
        "from strategy_clinic.compiler.programs import report_lines\n\n"
        'subjects = session.both() | globals().get("COMPILED", {})\n'
        f"report_lines(session.mode, subjects, session.setup, {names!r})"
    )
    text = nbformat.writes(measure.with_cell(wanted.notebook, code))
    ended = notebook_job.run_notebook(text, {"keras": keras}, measure.MODE_LIMIT)
    if ended["end"] != "finished":
        name = f"{wanted.mode.name} under Keras {keras}"
        raise UserError(f"{name} {ended['end']}: {ended['failure']}")
    reports = reported(nbformat.reads(ended["notebook"], as_version=4))
    return [Line(**line) for each in reports for line in each.get("lines", [])]


def report_lines(
    mode: FailureMode, subjects: Mapping[str, Any], setup: Setup, names: list[str]
) -> None:
    lines = compile_lines(mode, subjects, setup, names)
    report(f"{len(lines)} programs", lines=[asdict(line) for line in lines])


def write_lines(wanted: ModeNotebook, lines: list[Line]) -> None:
    record, mode = stored(), wanted.mode.id
    asked = {line.tpu for line in lines}
    others = [line for line in record.lines if line.mode != mode or line.tpu not in asked]
    new = CompilerRecord(
        compiler=f"libtpu {distribution_version('libtpu')}",
        versions=runtime.versions(),
        modes=record.modes | {mode: {"code": store.code_of(wanted.notebook)}},
        lines=sorted(others + lines, key=lambda line: (line.mode, line.tpu)),
    )
    write_whole(store.record_file("compiled"), line_by_line(asdict(new)))
