"""The code that readers paste: two blocks of plain TensorFlow under "The fix" of a notebook, and health checks.

The comments of a block announce its output: `print(x)  # 1.5` prints that line, and `step()  # ValueError: shape` raises that
class, with these words in its message. A block runs as a script in another process, on two virtual devices.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from strategy_clinic.base import files
from strategy_clinic.processes import python_process, request_reply

SECONDS = 120
RAISES = re.compile(r"#\s+(\w*(?:Error|Exception|Failure|Interrupt))(?:: (.+))?$")
PRINTS = re.compile(r"^\s*print\(.*\)\s+#\s+(.+)$")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The scripts of these modes get a described TPU; everything else is TensorFlow's.
DESCRIBED_TPU = ("fm16", "fm18")


def fix_blocks(notebook) -> list[str]:
    """Returns the two blocks of code in the section with the fix: the failing one, and the repaired one."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    section = text.partition("## The fix\n")[2].partition("\n## ")[0]
    return BLOCK.findall(section)


def code_lines(block: str) -> list[str]:
    return [
        line for line in block.splitlines() if line.strip() and not line.strip().startswith("#")
    ]


def announced_output(block: str) -> list[str]:
    found = [PRINTS.match(line) for line in code_lines(block)]
    return [each.group(1) for each in found if each]


def announced_error(block: str) -> tuple[str, str] | None:
    """Returns the class and a part of the message that a block announces, or None if it is not to raise."""
    found = [RAISES.search(line) for line in code_lines(block) if not PRINTS.match(line)]
    return next(((each.group(1), each.group(2) or "") for each in found if each), None)


def run_script(text: str, keras: int = 3, tpu: bool = False) -> dict:
    """Returns what a script prints and raises in a process that has TensorFlow and cannot import this package."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "script.py").write_text(text)
        quiet = {
            "TF_USE_LEGACY_KERAS": "1" if keras == 2 else "0",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        question = {"script": str(folder / "script.py"), "tpu": tpu}
        return ask_process("code_blocks", question, folder, quiet)


def ask_process(module: str, question: dict, folder: Path, environment: dict):
    """Returns what a module of these tests answers in another process, whose temporary files are in the folder."""
    paths = [str(files.PACKAGE.parent), str(Path(__file__).parent)]
    environment = (
        os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(folder)} | environment
    )
    question = question | {"answer": str(folder / "answer")}
    process = request_reply.ask(
        module, question, environment, folder / "log", python_process.fork_server()
    )
    try:
        deadline = time.monotonic() + SECONDS
        return request_reply.wait_for_answer(
            process, folder / "answer", deadline, folder / "log", "the script"
        )
    finally:
        request_reply.end(process)


def main():
    question = request_reply.read_question()
    os.chdir(Path(question["script"]).parent)
    from strategy_clinic.setups import runtime, tpu

    runtime.start_tensorflow()
    import tensorflow as tf

    if not question["tpu"]:
        cpu = tf.config.list_physical_devices("CPU")[0]
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, two)
        use_two_devices(tf)
    else:
        tpu.strategy()  # whose class is made from TensorFlow's own
        tf.distribute.TPUStrategy = lambda *given, **named: tpu.strategy()
        tf.distribute.cluster_resolver.TPUClusterResolver.connect = lambda *given, **named: None
    sys.modules["strategy_clinic"] = None  # from here on there is TensorFlow only
    request_reply.write_answer(question["answer"], outcome(Path(question["script"])))


def use_two_devices(tf):
    """Makes `MirroredStrategy()`, which takes all devices, take two."""
    real = tf.distribute.MirroredStrategy

    def mirrored(devices=None, cross_device_ops=None):
        if devices is None:
            return real(["CPU:0", "CPU:1"], cross_device_ops)
        return real(devices, cross_device_ops)

    tf.distribute.MirroredStrategy = mirrored


def outcome(script: Path) -> dict:
    printed, error = io.StringIO(), None
    code = compile(script.read_text(), str(script), "exec")
    with contextlib.redirect_stdout(printed):
        try:
            exec(code, {"__name__": "__main__", "__file__": str(script)})
        except Exception as reason:
            error = {"name": type(reason).__name__, "message": str(reason)}
    return {"printed": printed.getvalue().splitlines(), "error": error}


if __name__ == "__main__":
    main()
