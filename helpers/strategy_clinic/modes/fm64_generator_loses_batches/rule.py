"""Checks fm64: data of `fit` or `evaluate` have ended under a strategy, and they came from a Python generator."""

from ...examiner.recording import Recording
from ...examiner.rule import Steps, observed, rule
from ...observer.events import DataRanOut, StrategyMade

MESSAGE = (
    "Keras 3 reads batches of a Python generator under a strategy to learn their shape, and loses those "
    "that it cannot give back"
)


@rule("fm64", explains_divergence=False)
def generator_given(recording: Recording) -> Steps:
    if recording.keras_used == 2 or not recording.of(StrategyMade):
        return  # Keras 2 does not warn of an end without a number of steps, either
    for ended in recording.of(DataRanOut):
        if ended.location and ended.generator and not ended.steps:
            proof = "the data ended, and nobody has asked for a number of steps"
            yield observed("fm64", recording, ended.location, MESSAGE, proof)
