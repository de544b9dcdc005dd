"""What a reader pastes: two blocks of plain TensorFlow under "The fix" of a notebook, and each check with all that it needs.

A block says itself what must come of it: `print(x)  # 1.5` is a line of its output, and `step()  # ValueError: shape` is
what that line raises and a part of its message. It is run as a script in a process of its own, on two virtual devices.
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
from strategy_clinic.processes import forkserver_client, request_reply

SECONDS = 120
RAISES = re.compile(r"#\s+(\w*(?:Error|Exception|Failure|Interrupt))(?:: (.+))?$")
PRINTS = re.compile(r"^\s*print\(.*\)\s+#\s+(.+)$")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A TPU is described where a script asks for one; everything else of it is TensorFlow's own.
DESCRIBED_TPU = ("fm16", "fm18")


def blocks(notebook) -> list[str]:
    """The blocks of code in the section with the fix: before, and after."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    section = text.partition("## The fix\n")[2].partition("\n## ")[0]
    return BLOCK.findall(section)


def code_lines(block: str) -> list[str]:
    return [
        line for line in block.splitlines() if line.strip() and not line.strip().startswith("#")
    ]


def printed_as_told(block: str) -> list[str]:
    found = [PRINTS.match(line) for line in code_lines(block)]
    return [each.group(1) for each in found if each]


def raised_as_told(block: str) -> tuple[str, str] | None:
    """Class and part of the message that the block announces, if it is to raise."""
    found = [RAISES.search(line) for line in code_lines(block) if not PRINTS.match(line)]
    return next(((each.group(1), each.group(2) or "") for each in found if each), None)


def run_script(text: str, keras: int = 3, tpu: bool = False) -> dict:
    """What a script prints and raises, in a process of its own that has TensorFlow and nothing of the clinic."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        (place / "script.py").write_text(text)
        quiet = {
            "TF_USE_LEGACY_KERAS": "1" if keras == 2 else "0",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        question = {"script": str(place / "script.py"), "tpu": tpu}
        return asked_in_process("pasted", question, place, quiet)


def asked_in_process(module: str, question: dict, place: Path, given: dict):
    """What a module of these tests answers in a process of its own, whose temporary files lie in a folder of ours."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(files.ROOT), str(Path(__file__).parent)]),
        "TMPDIR": str(place),
        **given,
    }
    question = question | {"answer": str(place / "answer")}
    process = request_reply.asked(
        module, question, environment, place / "log", forkserver_client.warm()
    )
    try:
        deadline = time.monotonic() + SECONDS
        return request_reply.answer_of(
            process, place / "answer", deadline, place / "log", "the script"
        )
    finally:
        request_reply.put_down(process)


def main():
    question = request_reply.question()
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
    request_reply.reply(question["answer"], outcome(Path(question["script"])))


def use_two_devices(tf):
    """`MirroredStrategy()` takes every device that there is: let that be two."""
    real = tf.distribute.MirroredStrategy

    def mirrored(devices=None, cross_device_ops=None):
        if devices is None:
            return real(["CPU:0", "CPU:1"], cross_device_ops)
        return real(devices, cross_device_ops)

    tf.distribute.MirroredStrategy = mirrored


def outcome(script: Path) -> dict:
    said, error = io.StringIO(), None
    code = compile(script.read_text(), str(script), "exec")
    with contextlib.redirect_stdout(said):
        try:
            exec(code, {"__name__": "__main__", "__file__": str(script)})
        except Exception as reason:
            error = {"name": type(reason).__name__, "message": str(reason)}
    return {"printed": said.getvalue().splitlines(), "error": error}


if __name__ == "__main__":
    main()
