"""The process that runs the cells of some rows: asked for them by `run.py`."""

import os

from ...processes import request_reply
from ...setups import runtime
from ..devices import split_cpu
from ..differences import Result
from .catalogue import without_row
from .cells import results_of


def main() -> None:
    question = request_reply.read_question()
    runtime.choose_keras(question["keras"])
    runtime.start_tensorflow()
    if "rows" not in question:
        request_reply.write_answer(question["answer"], without_row(question["keras"]))
        return
    split_cpu()
    found: dict[str, Result] = {}
    for path, names in question["rows"].items():
        found |= results_of(path, question["keras"], names)
    request_reply.write_answer(
        question["answer"], {name: vars(each) for name, each in found.items()}
    )
    os._exit(0)  # threads of a strategy may still wait


if __name__ == "__main__":
    main()
