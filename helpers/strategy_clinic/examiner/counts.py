"""What a run counted of its speed and memory, as a report says it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..observer.events import Activations, DeviceBytes, HostReads, StepsCounted
from .findings import Location, RunCounts, Text, counted
from .recording import Recording, Role

UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
INPUT = "input"  # the only count that is a measured time


Relocate = Callable[[Location], Location]  # to the line that the reader of a program has


def counts_of(recordings: Sequence[Recording], locate: Relocate) -> list[RunCounts]:
    """Returns what the observer counted in each run that it saw to its end."""
    seen = [(each, each.last(StepsCounted)) for each in recordings]
    return [run_counts(each, counts, locate) for each, counts in seen if counts]


def run_counts(recording: Recording, counts: StepsCounted, locate: Relocate) -> RunCounts:
    where = recording.task or counted(recording.devices, "device")
    lines = [(name, text.relocated(locate)) for name, text in lines_of(recording, counts)]
    return RunCounts(
        f"counts on {where}",
        tuple(lines),
        values_of(recording, counts, locate),
        recording.role in (Role.WATCHED, Role.TASK),
    )


def lines_of(recording: Recording, counts: StepsCounted) -> Iterator[tuple[str, Text]]:
    if recording.examples:
        parts = recording.replicas
        each = f", {recording.examples // parts} on each of {parts} replicas" if parts > 1 else ""
        yield "examples", Text(f"{recording.examples} in a step{each}")
    if counts.held:
        yield "memory", Text(memory_in_words(counts.held))
    if counts.graph_calls or counts.eager_runs:
        yield "kept", Text(kept_in_words(counts.activations, recording))
    if counts.graph_calls:
        yield "steps", Text(steps_in_words(counts))
    if counts.eager_runs:
        yield (
            "eager",
            Text(f"{counted(counts.eager_runs, 'step')} executed by Python, not as a graph"),
        )
    if counts.graph_calls or counts.eager_runs:
        yield "reads", reads_in_words(counts)
    if counts.input_share is not None:
        yield INPUT, Text(f"{counts.input_share:.0%} of the time between steps waits for `next`")


def memory_in_words(held: Sequence[DeviceBytes]) -> str:
    first = held[0]
    parts = [f"{in_bytes(first.weights)} of weights"]
    if first.slots:
        parts.append(f"{in_bytes(first.slots)} of the optimizer's slots")
    if first.other:
        parts.append(f"{in_bytes(first.other)} of metrics and the like")
    words = f"{first.device}: {', '.join(parts)}"
    others = held[1:]
    if others and all(is_copy(each, first) for each in others):
        return f"{words}; as much on {', '.join(each.device for each in others)}"
    return "; ".join([words, *(memory_in_words([each]) for each in others)])


def kept_in_words(activations: Activations | None, recording: Recording) -> str:
    if activations is None:
        return "activations are not counted: no gradients were computed in a graph"
    size = kept_bytes(activations, recording)
    if size is None:
        fixed, each = in_bytes(activations.fixed), in_bytes(activations.per_example)
        words = f"{fixed} of activations and {each} for each example"
    else:
        words = f"{in_bytes(size)} of activations"
    where = f" on each of {recording.replicas} replicas" if recording.replicas > 1 else ""
    unknown = counted(activations.unknown, "tensor")
    more = f"; {unknown} of unknown size not counted" if activations.unknown else ""
    return f"{words}{where} until the gradients are computed{more}"


def kept_bytes(activations: Activations, recording: Recording) -> int | None:
    """Returns the bytes of the largest part of a batch; None if its examples decide about them and are not known."""
    if activations.per_example and not recording.examples:
        return None
    examples = -(-recording.examples // recording.replicas)
    return activations.fixed + activations.per_example * examples


def is_copy(device: DeviceBytes, other: DeviceBytes) -> bool:
    """Tells whether a device has the same weights and slots; small counters may be on one device only."""
    pairs = ((device.weights, other.weights), (device.slots, other.slots))
    return all(abs(one - two) <= 0.01 * max(one, two) + 64 for one, two in pairs)


def steps_in_words(counts: StepsCounted) -> str:
    calls, steps = counts.graph_calls, counts.updates - counts.eager_runs
    words = counted(calls, "graph call")
    if steps > 0:
        words = f"{counted(steps, 'update')} in {words}"
    return f"{words}, {counts.traces} of them traced"


def reads_in_words(counts: StepsCounted) -> Text:
    steps = counts.graph_calls + counts.eager_runs - 1
    if not counts.read:
        return Text("no value was read on the host between steps")
    rate = f"{counts.read / steps:.1f}" if steps else "0"
    most = counts.reads[0]
    words = f"{counted(counts.read, 'value')} read on the host between steps, {rate} a step"
    return Text(f"{words}; {most.times} of them on ", Location(most.location))


def in_bytes(size: int) -> str:
    for least, unit in UNITS:
        if size >= least:
            return f"{size / least:.1f} {unit}"
    return f"{size} bytes"


# For other programs


def values_of(recording: Recording, counts: StepsCounted, locate: Relocate) -> dict[str, object]:
    """Returns the counts under the names that the documentation gives them."""
    return {
        "devices": recording.devices,
        "task": recording.task,
        "examples": recording.examples,
        "replicas": recording.replicas,
        "memory": [vars(each) for each in counts.held],
        "activations": activations_as_dict(counts.activations, recording),
        "updates": counts.updates,
        "graph_calls": counts.graph_calls,
        "traces": counts.traces,
        "eager_runs": counts.eager_runs,
        "host_reads": counts.read,
        "host_reads_at": [read_as_dict(each, locate) for each in counts.reads],
        "input_share": counts.input_share,
    }


def activations_as_dict(
    activations: Activations | None, recording: Recording
) -> dict[str, object] | None:
    if activations is None:
        return None
    return {**vars(activations), "bytes": kept_bytes(activations, recording)}


def read_as_dict(read: HostReads, locate: Relocate) -> dict[str, object]:
    location = locate(Location(read.location))
    return {"file": location.file, "line": location.line, "times": read.times}
