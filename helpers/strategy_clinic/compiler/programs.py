"""What the TPU compiler says of a step: TensorFlow lowers it here, and the compiler inside libtpu takes it from there.

Nothing is executed and no TPU is needed. The compiler is an optional extra of 586 MB; without it one sentence says how to get
it, and what another machine has recorded is shown as that.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from ..base.display import report, reported, say
from ..base.errors import Unavailable, UserError, choose
from ..base.files import write_whole
from ..base.package_versions import distribution_version
from ..experiments.error_text import without_names
from ..processes import notebook_job, request_reply
from ..records import measure, store
from ..setups import runtime, tpu
from .lowering import lowered

USUAL = "v5e-8"
INSTALL = "pip install -c requirements.lock -e '.[compile]'"
COMPILER = Path(__file__).with_name("libtpu.py")
COMPILING = 300  # seconds for one program
# A machine that is no TPU host has to be told what it would be.
NO_HOST = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1",
    "TPU_HOST_BOUNDS": "1,1,1",
}


def not_installed() -> str:
    if importlib.util.find_spec("libtpu"):
        return ""
    return f"the TPU compiler is not installed (Linux on x86-64, 586 MB); run: {INSTALL}"


# One program


def of_function(function, *arguments, name: str = USUAL) -> dict:
    """Whether a plain function compiles for one core of a TPU, and what it takes."""
    import tensorflow as tf

    traced = tf.function(function, jit_compile=True)

    def lower():
        return traced.experimental_get_compiler_ir(*arguments)(stage="hlo_serialized")

    return compiled_by(lower, name)


def of_step(strategy, program) -> dict:
    """Whether a step that EmulatedTPUStrategy has traced compiles for all of its replicas."""
    replicas = strategy.num_replicas_in_sync
    shape = {"replicas": replicas, "partitions": strategy.parts, "spmd": strategy.spmd}
    return compiled_by(lambda: lowered(program), strategy.described, **shape)


def compiled_by(
    lower, name: str, replicas: int = 1, partitions: int = 1, spmd: bool = False
) -> dict:
    """The outcome in a verdict's words, whose words they are, and seconds and bytes where there is a program."""
    try:
        program = lower()
    except Unavailable as reason:
        return {"outcome": "unavailable", "by": "the clinic", "says": str(reason)}
    except Exception as error:  # of several classes: TensorFlow does not lower it, and says why
        return {"outcome": "raises", "by": "TensorFlow", "says": first_sentence(str(error))}
    if not_installed():
        return {"outcome": "unavailable", "by": "the clinic", "says": not_installed()}
    shape = {"replicas": replicas, "partitions": partitions, "spmd": spmd}
    request = {"topology": tpu.TPUS[choose("TPU", name, tpu.TPUS)].topology, **shape}
    return compile_apart(program, request) | shape


def first_sentence(message: str) -> str:
    """What a compiler says first, without the names and attributes of instructions."""
    first = message.strip().removeprefix("Failed getting HLO text: '").split("\n")[0]
    return re.sub(r"%\S+ = |, \w+=.*| HLO module: .*", "", without_names(first))


def compile_apart(program: bytes, request: dict) -> dict:
    """One compilation in a process of its own, which may die or be stopped."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        (place / "program.hlo").write_bytes(program)
        (place / "request.json").write_text(json.dumps(request))
        try:
            answer = answer_of_compiler(place)
        except TimeoutError:
            return compiler_verdict("hangs", f"no answer within {COMPILING} seconds")
        except ChildProcessError as error:
            return compiler_verdict("crashes", str(error))
    refused = answer.pop("refused", "")
    return answer | compiler_verdict("raises" if refused else "works", first_sentence(refused))


def answer_of_compiler(place: Path) -> dict:
    deadline, log = time.monotonic() + COMPILING, place / "log"
    with open(log, "w") as said:
        process = subprocess.Popen(
            [sys.executable, "-P", str(COMPILER), str(place)],
            env=os.environ | NO_HOST,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    try:
        return request_reply.wait_for_answer(
            process, place / "answer.json", deadline, log, "the compiler's process"
        )
    finally:
        request_reply.end(process)


def compiler_verdict(outcome: str, says: str) -> dict:
    return {"outcome": outcome, "by": "the TPU compiler", "says": says}


# The programs of a notebook


def compile_lines(mode, subjects: dict, setup, names) -> list[dict]:
    """One line for every program and TPU: what an experiment traces, or a function with its arguments."""
    lines = []
    for name in names:
        for subject, one in subjects.items():
            found = (
                of_arguments(one, name) if isinstance(one, tuple) else of_traced(one, setup, name)
            )
            where = {"mode": mode.id, "subject": subject, "tpu": name}
            lines += [where | {"evidence": "compiled"} | each for each in found]
    return lines


def of_arguments(one: tuple, name: str) -> list[dict]:
    function, *arguments = one
    return [of_function(function, *arguments, name=name)]


def of_traced(experiment, setup, name: str) -> list[dict]:
    """What an experiment hands to a TPU, whether or not it then comes to a good end."""
    with tpu.watched(name) as programs:
        try:
            experiment(setup.but(strategy="tpu_traced", devices=8))
        except Exception as error:  # the compiler is asked about what was traced before
            refused = {"outcome": "raises", "evidence": "traced", "by": "TPUStrategy"}
            says = first_sentence(str(error))
        else:
            refused, says = (
                {"outcome": "unavailable", "by": "the clinic"},
                "it runs no step on a TPU",
            )
        return [of_step(*each) for each in programs] or [refused | {"says": says}]


def line_in_words(line: dict) -> str:
    """One line for a reader, without seconds: with them it would be another line in each run."""
    head = f"{line['mode'].upper()} {line['subject']} on {line['tpu']} ({line['evidence']})"
    if line["outcome"] != "works":
        return f"{head} | {line['outcome']}, says {line['by']}: {line['says']}"
    many = f"{line['replicas']} replica" + "s" * (line["replicas"] != 1)
    return f"{head} | compiles for {many}, {amount(line['memory'])} of HBM"


def amount(memory: dict) -> str:
    """What a core holds at once: the program, and the most of what goes in, comes out and is needed on the way."""
    parts = {name: memory.get(name, 0) for name in ("argument", "output", "temp", "peak", "alias")}
    whole = parts["argument"] + parts["output"] + parts["temp"] - parts["alias"]
    return f"{(memory.get('generated_code', 0) + max(whole, parts['peak'])) / 1e6:.1f} MB"


# The record, shown where the compiler is not installed


def compiled_file() -> Path:
    return store.records_folder() / "compiled.json"


def stored() -> dict:
    return (
        json.loads(compiled_file().read_text())
        if compiled_file().exists()
        else {"modes": {}, "lines": []}
    )


def recorded(mode, name: str = USUAL) -> dict[str, str]:
    """The outcome of each subject of a mode in the record."""
    lines = [line for line in stored()["lines"] if (line["mode"], line["tpu"]) == (mode.id, name)]
    return {line["subject"]: line["outcome"] for line in lines}


def show_compiled(mode, subjects: dict, setup, name: str = USUAL):
    """Asks the compiler where it is installed; elsewhere says so, and what is recorded."""
    if not not_installed():
        for line in compile_lines(mode, subjects, setup, [name]):
            report(line_in_words(line), compiled=line)
        return
    record = stored()
    print(f"Not compiled here: {not_installed()}")
    for line in record["lines"]:
        if (line["mode"], line["tpu"]) == (mode.id, name):
            print(line_in_words(line | {"evidence": f"recorded with {record['compiler']}"}))


def with_report(path: Path, names) -> str:
    """The notebook with one more cell, which puts its steps to the compiler."""
    code = (
        "from strategy_clinic.base.display import report\nfrom strategy_clinic.compiler.programs import compile_lines\n\n"
        'subjects = {"broken": broken, "fixed": fixed} | globals().get("COMPILED", {})\n'
        f"report('', lines=compile_lines(session.mode, subjects, session.setup, {list(names)!r}))"
    )
    return measure.with_cell(path, code)


def compile_modes(chosen, names: list[str], keras: int, tell=say):
    """Puts the steps of notebooks to the compiler; what a notebook shows from the record is recorded anew."""
    names = [choose("TPU", name, tpu.TPUS) for name in names]
    if not_installed():
        raise UserError(not_installed())
    for mode, path in chosen:
        ended = notebook_job.run_notebook(
            with_report(path, names), {"keras": keras}, measure.MODE_LIMIT
        )
        if ended["end"] != "finished":
            raise UserError(f"{mode.name} under Keras {keras} {ended['end']}: {ended['failure']}")
        notebook = nbformat.reads(ended["notebook"], as_version=4)
        lines = next(each["lines"] for each in reported(notebook) if "lines" in each)
        for line in lines:
            took = f" in {line['seconds']:.1f} s" if "seconds" in line else ""
            tell(line_in_words(line) + took)
        if keras == 3 and "COMPILED" in path.read_text():
            keep_lines(mode, nbformat.read(path, as_version=4), lines)


def keep_lines(mode, notebook, lines: list[dict]):
    record, asked = stored(), {line["tpu"] for line in lines}
    others = [
        line for line in record["lines"] if line["mode"] != mode.id or line["tpu"] not in asked
    ]
    found = {
        "compiler": f"libtpu {distribution_version('libtpu')}",
        "versions": runtime.versions(),
        "modes": record["modes"] | {mode.id: {"code": store.code_of(notebook)}},
        "lines": sorted(others + lines, key=lambda line: (line["mode"], line["tpu"])),
    }
    write_whole(compiled_file(), store.line_by_line(found, ("lines",)))
