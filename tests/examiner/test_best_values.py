"""Tests which name of a program is found to keep its best value, and which one a restart may know."""

import textwrap

import edited_programs
import pytest
from strategy_clinic.examiner.best_values import best_value
from strategy_clinic.observer.events import Frame

LOOP = """\
for epoch in range(3):
    value = train()
    if value < best:
        best = value
        save()
"""
NAME = f"best = float('inf')\n{LOOP}"
KEY = f"best = {{'loss': 1e9, 'epoch': 0}}\n{LOOP}".replace("< best", "< best['loss']").replace(
    "best = v", "best['loss'] = v"
)
LIST = """\
losses = []
for epoch in range(3):
    losses.append(train())
    if losses[-1] <= min(losses):
        save()
"""
LEAVES = """\
class Best(Callback):
    def __init__(self, mode):
        self.best = np.inf if mode == "min" else -np.inf

    def on_epoch_end(self, epoch, logs):
        value = logs["loss"]
        if not self.monitor_op(value, self.best):
            return
        self.best = value
        save()
"""
OTHERWISE = """\
best = tf.constant(0.0)
for epoch in range(3):
    value = train()
    if value <= best:
        waited += 1
    else:
        best = value
        save()
"""


def found(tmp_path, text):
    program = tmp_path / "train.py"
    program.write_text(textwrap.dedent(text))
    line = next(i for i, each in enumerate(text.splitlines(), 1) if each.strip() == "save()")
    name, frame = best_value(Frame(str(program), line, "train")) or ("", None)
    return name, frame.line if frame else 0


@pytest.mark.parametrize(
    "text, name, line",
    [
        (NAME, "best", 1),
        (NAME.replace("value < best", "np.less(value, best)"), "best", 1),
        (KEY, "best['loss']", 1),
        (KEY.replace("{'loss': 1e9, 'epoch': 0}", "dict(loss=1e9, epoch=0)"), "best['loss']", 1),
        (LIST, "min(losses)", 1),
        (LIST.replace("losses[-1] <=", "losses[-1] =="), "min(losses)", 1),
        (LEAVES, "best", 3),
        (OTHERWISE, "best", 1),
    ],
    ids=[
        "name",
        "function",
        "key",
        "keyword",
        "list",
        "equal to the least",
        "leaves before",
        "otherwise",
    ],
)
def test_where_a_best_value_begins(tmp_path, text, name, line):
    assert found(tmp_path, text) == (name, line)


OTHER_OBJECT = [
    "print(vars(args))",
    "setattr(optimizer, 'name', 'b')",
    "config = Config(**vars(args))",
    "args.__dict__.update(given)",
    "class Record:\n    best: float\n    losses: list",
]


@pytest.mark.parametrize("line", OTHER_OBJECT)
@pytest.mark.parametrize("text", [NAME, KEY, LIST, LEAVES], ids=["name", "key", "list", "leaves"])
def test_what_happens_to_another_object(tmp_path, text, line):
    name, _ = found(tmp_path, f"{text}{line}\n")
    assert name == found(tmp_path, text)[0] != ""


@pytest.mark.parametrize(
    "text, edit",
    [
        (NAME, ("float('inf')", "float(saved)")),
        (NAME, ("value < best", "is_due(value, best)")),
        (NAME, ("for epoch", "best = restore()\nfor epoch")),
        (KEY, ("for epoch", "best = restore()\nfor epoch")),
        (KEY, ("for epoch", "best.update(restore())\nfor epoch")),
        (KEY, ("for epoch", "restore(best)\nfor epoch")),
        (KEY, ("for epoch", "best['loss'] = restore()\nfor epoch")),
        (KEY, ("{'loss': 1e9", "{**restore()")),
        (KEY, ("{'loss': 1e9", "{'loss': restore()")),
        (LIST, ("for epoch", "losses = restore()\nfor epoch")),
        (LIST, ("for epoch", "losses += restore()\nfor epoch")),
        (LIST, ("for epoch", "losses.extend(restore())\nfor epoch")),
        (LIST, ("for epoch", "restore(into=losses)\nfor epoch")),
        (
            LEAVES,
            (
                "    def on_epoch_end",
                "    def load(self):\n        vars(self).update(restore())\n\n    def on_epoch_end",
            ),
        ),
        (
            LEAVES,
            (
                "class Best",
                "kept = Best('min')\nfor name in saved:\n    setattr(kept, name, saved[name])\nclass Best",
            ),
        ),
        (LIST, ("<= min(losses)", "== 3")),
        (LEAVES, ('if mode == "min" else -np.inf', 'if mode == "min" else restore()')),
        (OTHERWISE, ("value <= best", "value <= other")),
    ],
)
def test_what_a_restart_may_know(tmp_path, text, edit):
    assert found(tmp_path, edited_programs.edited(text, [edit])) == ("", 0)
