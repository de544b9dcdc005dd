"""The lines of a program that a setup decides: those that make the strategy, save a model and load it.

Every other line of a program, comments included, is the same under all setups.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..setups import runtime
from ..setups.parameters import Setup

TPU = (
    'resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")',
    "tf.config.experimental_connect_to_cluster(resolver)",
    "tf.tpu.experimental.initialize_tpu_system(resolver)",
    "strategy = tf.distribute.TPUStrategy(resolver)",
)


def default(count: int, kind: str) -> tuple[str, ...]:
    return ("strategy = tf.distribute.get_strategy()",)


def one_device(count: int, kind: str) -> tuple[str, ...]:
    return (f'strategy = tf.distribute.OneDeviceStrategy("{kind}:0")',)


def mirrored(count: int, kind: str) -> tuple[str, ...]:
    strategy = f"strategy = tf.distribute.MirroredStrategy({listed(count, kind)})"
    return *split(count, kind), strategy


def central_storage(count: int, kind: str) -> tuple[str, ...]:
    storage = f'{listed(count, kind)}, "{kind}:0"'
    strategy = f"strategy = tf.distribute.experimental.CentralStorageStrategy({storage})"
    return *split(count, kind), strategy


def multi_worker(count: int, kind: str) -> tuple[str, ...]:
    return ("strategy = tf.distribute.MultiWorkerMirroredStrategy()",)


def parameter_server(count: int, kind: str) -> tuple[str, ...]:
    return (
        "resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()",
        "strategy = tf.distribute.ParameterServerStrategy(resolver)",
    )


def tpu(count: int, kind: str) -> tuple[str, ...]:
    return TPU


def split(count: int, kind: str) -> tuple[str, ...]:
    """Returns the lines that make several devices of one; none where there are enough, or where one is asked for."""
    if count == 1 or (kind == "GPU" and len(runtime.accelerators()) >= count):
        return ()
    limit = f"memory_limit={runtime.GPU_MEMORY_MB}" if kind == "GPU" else ""
    name = kind.lower()
    return (
        f'{name} = tf.config.list_physical_devices("{kind}")[0]',
        f"tf.config.set_logical_device_configuration({name}, "
        f"[tf.config.LogicalDeviceConfiguration({limit})] * {count})",
    )


def listed(count: int, kind: str) -> str:
    return "[" + ", ".join(f'"{kind}:{number}"' for number in range(count)) + "]"


STRATEGY_LINES: dict[str, Callable[[int, str], tuple[str, ...]]] = {
    "default": default,
    "one_device": one_device,
    "mirrored": mirrored,
    "central_storage": central_storage,
    "multi_worker": multi_worker,
    "parameter_server": parameter_server,
    "tpu_traced": tpu,
    "tpu": tpu,
}
# How a statement begins that belongs to the lines that make the strategy.
STRATEGY_STATEMENT = re.compile(
    r"(?:[cg]pu = tf\.config\.list_physical_devices\(|tf\.config\.set_logical_device_configuration\([cg]pu,"
    r"|resolver = tf\.distribute\.cluster_resolver\.|tf\.config\.experimental_connect_to_cluster\("
    r"|tf\.tpu\.experimental\.initialize_tpu_system\(|strategy = tf\.distribute\.)"
)


@dataclass(frozen=True)
class Format:
    """How a program saves `{model}`, and how it loads what was saved as `{loaded}`."""

    save: tuple[str, ...]
    load: tuple[str, ...]


FORMATS = {
    "keras": Format(
        ('{model}.save("model.keras")',),
        ('{loaded} = tf.keras.models.load_model("model.keras")',),
    ),
    "h5": Format(
        ('{model}.save("model.h5")',),
        ('{loaded} = tf.keras.models.load_model("model.h5")',),
    ),
    "weights_h5": Format(
        ('{model}.save_weights("model.weights.h5")',),
        ("{loaded} = make_model()", '{loaded}.load_weights("model.weights.h5")'),
    ),
    "checkpoint": Format(
        ('tf.train.Checkpoint(model={model}).save("saved/checkpoint")',),
        (
            "{loaded} = make_model()",
            'tf.train.Checkpoint(model={loaded}).restore(tf.train.latest_checkpoint("saved"))',
        ),
    ),
    "saved_model": Format(
        ('{model}.export("saved_model")',),
        ('{loaded} = tf.saved_model.load("saved_model")',),
    ),
    "npz": Format(
        ('np.savez("weights.npz", *{model}.get_weights())',),
        (
            "{loaded} = make_model()",
            '{loaded}.set_weights(list(np.load("weights.npz").values()))',
        ),
    ),
}


def for_setup(text: str, setup: Setup, kind: str = "") -> str:
    """Returns the program with the lines of this setup, on the kind of device that this machine has, or on another."""
    kind = kind or ("GPU" if runtime.kind() == "gpu" else "CPU")
    strategy = STRATEGY_LINES[setup.strategy](setup.devices, kind)
    lines = with_strategy(text.splitlines(), strategy)
    wanted = FORMATS[setup.save_format]
    for known in FORMATS.values():
        lines = with_lines(lines, known.save, wanted.save)
        lines = with_lines(lines, known.load, wanted.load)
    if uses_numpy(lines) and "import numpy as np" not in lines:
        lines.insert(lines.index("import tensorflow as tf"), "import numpy as np")
    return "\n".join(lines) + "\n"


def uses_numpy(lines: list[str]) -> bool:
    return any(re.search(r"\bnp\.", line.split("#")[0]) for line in lines)


def with_strategy(lines: list[str], wanted: tuple[str, ...]) -> list[str]:
    """Returns the lines with others in place of those, one after the other, that make the strategy first."""
    numbers = [n for n, line in enumerate(lines) if STRATEGY_STATEMENT.match(line.strip())]
    if not numbers:
        return lines
    first = last = numbers[0]
    while last + 1 in numbers and not lines[last].strip().startswith("strategy ="):
        last += 1
    block = [indent_of(lines[first]) + line for line in wanted]
    block[-1] += comment_of(lines[last])
    return lines[:first] + block + lines[last + 1 :]


def with_lines(lines: list[str], known: tuple[str, ...], wanted: tuple[str, ...]) -> list[str]:
    """Returns the lines with those of one format replaced by those of another, wherever they stand."""
    if known == wanted:
        return lines
    changed: list[str] = []
    rest = list(lines)
    while rest:
        found = match(rest[: len(known)], known)
        if found is None:
            changed.append(rest.pop(0))
            continue
        block = [indent_of(rest[0]) + line.format(**found) for line in wanted]
        block[-1] += comment_of(rest[len(known) - 1])
        changed += block
        rest = rest[len(known) :]
    return changed


def match(lines: list[str], templates: tuple[str, ...]) -> dict[str, str] | None:
    """Returns the names that stand for `{model}` or `{loaded}` if these lines are those of the templates."""
    found: dict[str, str] = {}
    if len(lines) < len(templates):
        return None
    for line, template in zip(lines, templates):
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>\\w+)", re.escape(template))
        matched = re.fullmatch(pattern, without_comment(line).strip())
        if not matched or any(
            found.get(name, value) != value for name, value in matched.groupdict().items()
        ):
            return None
        found |= matched.groupdict()
    return found


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def without_comment(line: str) -> str:
    return line.split("  #")[0]


def comment_of(line: str) -> str:
    """Returns the comment at the end of a line with the two blanks before it, or ""."""
    before, mark, comment = line.partition("  #")
    return f"{mark}{comment}" if before.strip() else ""
