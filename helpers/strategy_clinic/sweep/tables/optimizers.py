"""Optimizers, plain and with each of their options."""

from dataclasses import replace
from typing import Any

from ..items import Call, How, Item, Kind, Parts, call

FIT = ((How.FIT, Parts.EVEN, (1, 2, 4)),)
ONE_AND_TWO = ((How.FIT, Parts.EVEN, (1, 2)),)
FIT_ON_TWO = ((How.FIT, Parts.EVEN, (2,)),)
ALL = (*FIT, (How.LOOP, Parts.UNEVEN, (2, 4)), (How.LOOP, Parts.EMPTY, (2, 4)))
RATE = 0.1

# Which versions of Keras have each, and what it is constructed with.
CLASSES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "SGD": ((2, 3), {"momentum": 0.9}),
    "RMSprop": ((2, 3), {"momentum": 0.9}),
    "Adam": ((2, 3), {}),
    "AdamW": ((2, 3), {}),
    "Adadelta": ((2, 3), {}),
    "Adagrad": ((2, 3), {}),
    "Adamax": ((2, 3), {}),
    "Adafactor": ((2, 3), {}),
    "Nadam": ((2, 3), {}),
    "Ftrl": ((2, 3), {}),
    "Lion": ((2, 3), {}),
    "Lamb": ((3,), {}),
    "Muon": ((3,), {}),
    "ScheduleFreeAdamW": ((3,), {}),
}

# Which versions have each option, the arguments, and how the measurement differs.
OPTIONS: dict[str, tuple[tuple[int, ...], dict[str, Any], dict[str, Any]]] = {
    "clipnorm": ((2, 3), {"clipnorm": 0.1}, {}),
    "global_clipnorm": ((2, 3), {"global_clipnorm": 0.1}, {}),
    "clipvalue": ((2, 3), {"clipvalue": 0.05}, {}),
    "weight_decay": ((2, 3), {"weight_decay": 0.1}, {}),
    "ema": ((2, 3), {"use_ema": True, "ema_momentum": 0.5}, {}),
    "accumulation": ((3,), {"gradient_accumulation_steps": 2}, {}),
    "loss_scale": ((2, 3), {}, {"scaled": True}),
}
EVERYWHERE = {"SGD", "Adam"}  # with each option at every number of replicas; the others with two
SPARSE = ("SGD", "RMSprop", "Adam", "Adagrad", "Ftrl", "Lion")


def optimizer(name: str) -> Call:
    return call(f"optimizers.{name}", learning_rate=RATE, **CLASSES[name][1])


def plain(name: str) -> Item:
    return Item(Kind.OPTIMIZER, name, "plain", optimizer(name), ALL, keras=CLASSES[name][0])


def with_option(name: str, option: str) -> Item:
    versions, arguments, differs = OPTIONS[option]
    return replace(
        plain(name),
        option=option,
        make=optimizer(name).but(**arguments),
        cells=FIT if name in EVERYWHERE else FIT_ON_TWO,
        with_=tuple(differs.items()),
        keras=tuple(sorted({*versions} & {*CLASSES[name][0]})),
    )


def overflow(name: str) -> Item:
    differs = (("scaled", True), ("overflow", True))
    return replace(plain(name), option="loss_scale overflow", cells=FIT, with_=differs)


def repeated_ids(name: str) -> Item:
    return replace(plain(name), option="repeated ids", cells=ONE_AND_TWO)


ITEMS = [
    *[plain(name) for name in CLASSES],
    *[with_option(name, option) for name in CLASSES for option in OPTIONS],
    *[overflow(name) for name in ("SGD", "Adam")],
    *[repeated_ids(name) for name in SPARSE],
    replace(
        plain("SGD"),
        name="MultiOptimizer",
        make=call("own.multi_optimizer"),
        keras=(3,),
    ),
]
NOT_SWEPT = {
    "Optimizer": "the base class",
    "LossScaleOptimizer": "each optimizer is swept with it: the option loss_scale",
}
