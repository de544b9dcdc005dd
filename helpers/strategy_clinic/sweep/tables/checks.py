"""What a run says of itself: steps that are counted, a loss that is reported, and what goes on after a restart.

One device may be wrong, too: what is right is counted, computed from the outputs, or given by a run without a restart.
"""

from typing import Any

from ..items import How, Item, Kind, Parts, Where

COUNTS = (1, 2)
FIT = ((How.FIT, Parts.EVEN, COUNTS), (How.FIT, Parts.UNEVEN, (2,)))
EVALUATE = ((How.EVALUATE, Parts.EVEN, COUNTS), (How.EVALUATE, Parts.UNEVEN, COUNTS))
LOOP = ((How.LOOP, Parts.EVEN, COUNTS), (How.LOOP, Parts.UNEVEN, (2,)))
ONCE = ((How.FIT, Parts.EVEN, COUNTS),)
EMPTY = ((How.LOOP, Parts.EMPTY, (2,)),)


def row(
    name: str, option: str, cells: tuple[Where, ...], keras: tuple[int, ...] = (3,), **more: Any
) -> Item:
    return Item(Kind.CHECK, name, option, None, cells, with_=tuple(more.items()), keras=keras)


BOTH = (2, 3)
ITEMS = [
    row("steps", "arrays", FIT, BOTH),
    row("steps", "tf.data", ONCE, BOTH, data="dataset"),
    row("steps", "Sequence", ONCE, data="sequence"),
    row("steps", "one epoch of a generator", ((How.FIT, Parts.EVEN, (1,)),), data="generator"),
    row("steps", "steps_per_execution", ONCE, data="dataset", steps=1, at_once=2),
    row("steps", "a loop", LOOP, BOTH),
    row("loss", "fit", FIT, BOTH),
    row("loss", "evaluate", EVALUATE, BOTH),
    row("loss", "a loop", LOOP, BOTH),
    row("loss", "compute_loss in the scope", ((How.LOOP, Parts.EVEN, COUNTS),)),
    row("restart", "a loop", ((How.LOOP, Parts.EVEN, COUNTS),), BOTH),
    row("restart", "evaluate", ((How.EVALUATE, Parts.UNEVEN, COUNTS),), BOTH),
    row("restart", "fit again after a backup", ONCE),
    row("order", "fit of arrays after a seed", ((How.FIT, Parts.EVEN, (1,)),), BOTH),
    row("arrays", "a generator of slices", ((How.FIT, Parts.EVEN, (2,)),)),
    row("arrays", "a generator of copies", ((How.FIT, Parts.EVEN, (2,)),), copied=True),
    row("paper", "ScheduleFreeAdamW", ((How.LOOP, Parts.EVEN, (1,)),)),
    row("history", "float8", ((How.FIT, Parts.EVEN, (2,)),)),
    row("rows", "counted with aggregation sum", ((How.FIT, Parts.EVEN, (2,)),)),
    row("repeated ids", "clipnorm", ((How.FIT, Parts.EVEN, (1,)),)),
    row("shape", "Conv2D with oneDNN", EMPTY, onednn=True),
    row("shape", "Conv2D", EMPTY, onednn=False),
    row("deletion", "an iterator", ((How.LOOP, Parts.EVEN, (1,)),), autotuned=True),
    row("deletion", "an iterator, not autotuned", ((How.LOOP, Parts.EVEN, (1,)),), autotuned=False),
]
