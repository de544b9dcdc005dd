"""A session of a mode that exists in tests only, and the verdicts of experiments that belong to no page."""

from strategy_clinic import Claim, FailureMode, Setup, Symptom
from strategy_clinic.experiments.verdicts import Verdict
from strategy_clinic.session import Session

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
    claims=(Claim("000-C1", "one", "false"), Claim("000-C2", "two", {2: "true", 3: "half"})),
)


def verdicts(experiments: dict, setups: list[Setup]) -> list[Verdict]:
    return Session(MODE, setups[0]).run(experiments, setups)
