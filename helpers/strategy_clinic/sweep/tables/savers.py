"""Ways to save and to load: training continues from the file as if it had not been interrupted."""

from ..items import How, Item, Kind, Parts


def saver(name: str, option: str, keras: tuple[int, ...] = (2, 3), **differs: str) -> Item:
    cells = ((How.FIT, Parts.EVEN, (2, 4)),)
    with_ = tuple(differs.items())
    return Item(Kind.SAVER, name, option, None, cells, with_=with_, keras=keras)


# Loaded onto the same number of replicas, onto one device, or from one device onto replicas.
WAYS = {"same": "", "to one device": "load", "from one device": "save"}
ITEMS = [
    saver(name, f"{optimizer} {option}", alone=alone, optimizer=optimizer)
    for name in ("save .keras", "save .h5", "save_weights", "tf.train.Checkpoint")
    for optimizer in ("Adam", "SGD")
    for option, alone in WAYS.items()
] + [saver("export", option, alone=alone) for option, alone in WAYS.items()]
