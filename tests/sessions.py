"""A mode that exists in tests only, and the verdicts on experiments that belong to no page."""

from strategy_clinic import Claim, FailureMode, Setup, Symptom
from strategy_clinic.experiments.experiment import run_all
from strategy_clinic.experiments.verdicts import Verdict, classify

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
    claims=(Claim("000-C1", "one", "false"), Claim("000-C2", "two", {2: "true", 3: "half"})),
)


def verdicts(experiments: dict, setups: list[Setup]) -> list[Verdict]:
    pairs = [(name, setup) for setup in setups for name in experiments]
    results = run_all([(experiments[name], setup) for name, setup in pairs])
    return [classify(*pair, result) for pair, result in zip(pairs, results)]
