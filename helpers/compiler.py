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
from pathlib import Path

import nbformat

from . import jobs, records, render, runtime, tpu
from .lowering import lowered
from .modes import show as show_line
from .refusals import Refused, Unavailable, choose
from .sources import say
from .verdicts import without_names
from .workers import write_whole

# The compiler's names for the TPUs that helpers/tpu.py describes.
TOPOLOGIES = {
    "v2-8": "v2:2x2",
    "v3-8": "v3:2x2",
    "v4-8": "v4:2x2x1",
    "v5e-8": "v5e:2x4",
    "v6e-8": "v6e:2x4",
}
USUAL = "v5e-8"
INSTALL = "pip install -c requirements.lock -e '.[compile]'"
COMPILER = Path(__file__).with_name("tpu_compiler.py")
SECONDS = 300
# A machine that is no TPU host has to be told what it would be.
NO_HOST = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1",
    "TPU_HOST_BOUNDS": "1,1,1",
}


def missing() -> str:
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

    return compiled(lower, name)


def of_step(strategy, program) -> dict:
    """Whether a step that EmulatedTPUStrategy has traced compiles for all of its replicas."""
    replicas = strategy.num_replicas_in_sync
    shape = {"replicas": replicas, "partitions": strategy.parts, "spmd": strategy.spmd}
    return compiled(lambda: lowered(program), strategy.described, **shape)


def compiled(lower, name: str, replicas: int = 1, partitions: int = 1, spmd: bool = False) -> dict:
    """The outcome in a verdict's words, whose words they are, and seconds and bytes where there is a program."""
    try:
        program = lower()
    except Unavailable as reason:
        return {"outcome": "unavailable", "by": "the clinic", "says": str(reason)}
    except Exception as error:  # of several classes: TensorFlow does not lower it, and says why
        return {"outcome": "raises", "by": "TensorFlow", "says": sentence(str(error))}
    if missing():
        return {"outcome": "unavailable", "by": "the clinic", "says": missing()}
    shape = {"replicas": replicas, "partitions": partitions, "spmd": spmd}
    return ask(program, {"topology": TOPOLOGIES[choose("TPU", name, TOPOLOGIES)], **shape}) | shape


def sentence(message: str) -> str:
    """What a compiler says first, without the names and attributes of instructions."""
    first = message.strip().removeprefix("Failed getting HLO text: '").split("\n")[0]
    return re.sub(r"%\S+ = |, \w+=.*| HLO module: .*", "", without_names(first))


def ask(program: bytes, request: dict) -> dict:
    """One compilation in a process of its own, which may die or be stopped."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "program.hlo").write_bytes(program)
        (place / "request.json").write_text(json.dumps(request))
        command = [sys.executable, str(COMPILER), folder]
        try:
            end = subprocess.run(
                command, env=os.environ | NO_HOST, timeout=SECONDS, capture_output=True
            )
        except subprocess.TimeoutExpired:
            return told("hangs", f"no answer within {SECONDS} seconds")
        if not (place / "answer.json").exists():
            return told("crashes", f"the compiler's process ended with status {end.returncode}")
        answer = json.loads((place / "answer.json").read_text())
    refused = answer.pop("refused", "")
    return answer | told("raises" if refused else "works", sentence(refused))


def told(outcome: str, says: str) -> dict:
    return {"outcome": outcome, "by": "the TPU compiler", "says": says}


# The programs of a notebook


def report(mode, subjects: dict, setup, names) -> list[dict]:
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
            says = sentence(str(error))
        else:
            refused, says = (
                {"outcome": "unavailable", "by": "the clinic"},
                "it runs no step on a TPU",
            )
        return [of_step(*each) for each in programs] or [refused | {"says": says}]


def in_words(line: dict) -> str:
    """One line for a reader; how long it took is another line in each run, and is left to whoever asks for it."""
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


def path_of() -> Path:
    return records.folder() / "compiled.json"


def stored() -> dict:
    return json.loads(path_of().read_text()) if path_of().exists() else {"modes": {}, "lines": []}


def recorded(mode, name: str = USUAL) -> dict[str, str]:
    """The outcome of each subject of a mode in the record."""
    lines = [line for line in stored()["lines"] if (line["mode"], line["tpu"]) == (mode.id, name)]
    return {line["subject"]: line["outcome"] for line in lines}


def show(mode, subjects: dict, setup, name: str = USUAL):
    """Asks the compiler where it is installed; elsewhere says so, and what is recorded."""
    if not missing():
        for line in report(mode, subjects, setup, [name]):
            show_line(in_words(line), compiled=line)
        return
    record = stored()
    print(f"Not compiled here: {missing()}")
    for line in record["lines"]:
        if (line["mode"], line["tpu"]) == (mode.id, name):
            print(in_words(line | {"evidence": f"recorded with {record['compiler']}"}))


def with_report(path: Path, names) -> str:
    """The notebook with one more cell, which puts its steps to the compiler."""
    code = (
        'from helpers import compiler\n\nall_of_it = {"broken": broken, "fixed": fixed} | globals().get("COMPILED", {})\n'
        f"compiler.show_line('', lines=compiler.report(MODE, all_of_it, setup, {list(names)!r}))"
    )
    return records.with_cell(path, code)


def compile_modes(chosen, names: list[str], keras: int, tell=say):
    """Puts the steps of notebooks to the compiler; what a notebook shows from the record is recorded anew."""
    names = [choose("TPU", name, TOPOLOGIES) for name in names]
    if missing():
        raise Refused(missing())
    for mode, path in chosen:
        ended = jobs.run(with_report(path, names), {"keras": keras}, records.LIMIT)
        if ended["end"] != "finished":
            raise Refused(f"{mode.name} under Keras {keras} {ended['end']}: {ended['failure']}")
        notebook = nbformat.reads(ended["notebook"], as_version=4)
        lines = next(each["lines"] for each in render.reports(notebook) if "lines" in each)
        for line in lines:
            took = f" in {line['seconds']:.1f} s" if "seconds" in line else ""
            tell(in_words(line) + took)
        if keras == 3 and "COMPILED" in path.read_text():
            keep(mode, nbformat.read(path, as_version=4), lines)


def keep(mode, notebook, lines: list[dict]):
    record, asked = stored(), {line["tpu"] for line in lines}
    others = [
        line for line in record["lines"] if line["mode"] != mode.id or line["tpu"] not in asked
    ]
    found = {
        "compiler": f"libtpu {runtime.has_version('libtpu')}",
        "versions": runtime.versions(),
        "modes": record["modes"] | {mode.id: {"code": records.code_of(notebook)}},
        "lines": sorted(others + lines, key=lambda line: (line["mode"], line["tpu"])),
    }
    write_whole(path_of(), records.in_lines(found, ("lines",)))
