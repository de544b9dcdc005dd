"""Several workers and parameter servers, each a process: `fit`, `evaluate`, `predict` and a loop of one's own."""

from typing import Any

from ..items import How, Item, Kind, Parts, Where

MIRRORED = "MultiWorkerMirroredStrategy"
SERVERS = "ParameterServerStrategy"
TWO, ONE = (2,), (1,)


def row(
    strategy: str, option: str, *cells: Where, keras: tuple[int, ...] = (2, 3), **more: Any
) -> Item:
    return Item(Kind.WORKERS, strategy, option, None, cells, with_=tuple(more.items()), keras=keras)


ITEMS = [
    row(
        MIRRORED,
        "plain",
        (How.FIT, Parts.EVEN, TWO),
        (How.FIT, Parts.UNEVEN, TWO),
        (How.EVALUATE, Parts.EVEN, TWO),
        (How.EVALUATE, Parts.UNEVEN, TWO),
        (How.PREDICT, Parts.EVEN, TWO),
        (How.LOOP, Parts.EVEN, TWO),
        (How.LOOP, Parts.UNEVEN, TWO),
    ),
    row(
        MIRRORED,
        "tf.data",
        (How.FIT, Parts.EVEN, TWO),
        data="dataset",
    ),
    row(
        MIRRORED,
        "Adam clipnorm",
        (How.FIT, Parts.EVEN, TWO),
        (How.LOOP, Parts.EVEN, TWO),
        optimizer="Adam",
        clipnorm=0.1,
    ),
    row(
        MIRRORED,
        "BatchNormalization",
        (How.LOOP, Parts.EVEN, TWO),
        layer="BatchNormalization",
    ),
    row(MIRRORED, "one replica each", (How.LOOP, Parts.EVEN, ONE)),
    # Steps of several workers are taken in any order, so parameter servers have one.
    row(SERVERS, "plain", (How.LOOP, Parts.EVEN, ONE), (How.LOOP, Parts.UNEVEN, ONE)),
    row(
        SERVERS,
        "methods",
        (How.FIT, Parts.EVEN, ONE),
        (How.EVALUATE, Parts.EVEN, ONE),
        (How.PREDICT, Parts.EVEN, ONE),
    ),
]
