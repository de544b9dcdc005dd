"""Checks fm61: `strategy.run` has trained for many steps outside of a graph, on several replicas."""

from collections.abc import Iterator

from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import observed, rule
from ...observer.events import RunEager

ENOUGH = 50  # steps; a short program may be eager on purpose


@rule("fm61", explains_divergence=False)
def steps_by_python(recording: Recording) -> Iterator[Finding]:
    for run in recording.of(RunEager):
        if run.calls >= ENOUGH and run.replicas > 1 and not run.by_choice and run.location:
            message = (
                f"Python executes each step, operation by operation, for {run.replicas} replicas: "
                "this `strategy.run` is in no `tf.function`"
            )
            proof = f"{run.calls} calls that trained, none of them in a graph"
            yield observed("fm61", recording, run.location, message, proof)
