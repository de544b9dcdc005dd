"""Scripts of a page's experiments, edited, with the step that judges them; they run without Jupyter, in one process."""

import ast
import sys
import tempfile
from pathlib import Path

from code_blocks import ask_process
from strategy_clinic.base.free_names import needed, one_import_each, unparsed
from strategy_clinic.processes import request_reply


def script(source: str, experiment: str, step: str) -> str:
    """Returns what an experiment of a page needs, and the step that judges it."""
    body = one_import_each(ast.parse(source).body)
    return f"{unparsed(needed(body, {experiment, 'session'}))}\n\nsession.{step}({experiment})\n"


def complaints(scripts: list[str]) -> list[str]:
    """Returns what each script raises, in words, or "" if it runs to its end."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        paths = [place / f"script_{number}.py" for number in range(len(scripts))]
        for path, text in zip(paths, scripts):
            path.write_text(text)
        return ask_process("page_scripts", {"scripts": list(map(str, paths))}, place, {})


def main():
    question = request_reply.read_question()
    request_reply.write_answer(
        question["answer"], [complaint(Path(each)) for each in question["scripts"]]
    )


def complaint(path: Path) -> str:
    try:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    main()
