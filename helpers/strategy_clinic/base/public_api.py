"""The names that a notebook imports from `strategy_clinic`, and the modules that define them."""

WORDS = {
    "Claim": "modes.failure_mode",
    "FailureMode": "modes.failure_mode",
    "Proof": "experiments.proofs",
    "Setup": "setups.parameters",
    "SilentFailure": "experiments.checks",
    "Symptom": "modes.failure_mode",
    "Unavailable": "base.errors",
    "build_strategy": "setups.parameters",
    "experiment": "experiments.experiment",
    "greet": "setups.environment_check",
    "observe": "experiments.run_in_process",
    "open": "session",
    "pasted": "experiments.show_source",
    "runner": "setups.strategies",
    "text_table": "base.display",
    "watching": "examiner.frontends.in_process",
}
# The functions that IPython calls when it loads and unloads an extension.
EXTENSION = dict.fromkeys(
    ("load_ipython_extension", "unload_ipython_extension"), "examiner.frontends.ipython_magic"
)
# Modules that notebooks use by their last name: first those that exercises are made of.
TOOLS = {
    "checks": "experiments.checks",
    "figures": "panel.figures",
    "formats": "setups.formats",
    "machine": "setups.machine_report",
}
MODULES = TOOLS | {
    "atlas": "records.atlas",
    "checkup": "records.runtime_check",
    "desk": "triage.widget",
    "examiner": "examiner.frontends.widget",
    "finder": "panel.mode_finder",
    "runtime": "setups.runtime",
    "tpu": "setups.tpu",
    "workers": "experiments.workers",
}
# The names that an exercise may use and must not change; `compiler` is a folder.
NAMES = (*WORDS, *TOOLS, "compiler")
