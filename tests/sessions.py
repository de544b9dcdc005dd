"""A mode that exists in tests only."""

from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm00",
    slug="example",
    title="An example",
    sees="",
    fix="",
    document="000",
    switches=(),
    symptoms=(
        Symptom("ValueError", "wrong shape", devices=(2,)),
        Symptom("SilentFailure", "", devices=(4,)),
    ),
    prints="sum 3",
    exercise_prints="sum 3",
)
