"""The names that a notebook imports from `strategy_clinic`, and the modules that define them."""

WORDS = {
    "Claim": "modes.failure_mode",
    "FailureMode": "modes.failure_mode",
    "Setup": "setups.parameters",
    "SilentFailure": "programs.checks",
    "Symptom": "modes.failure_mode",
    "Unavailable": "base.errors",
    "build_strategy": "setups.parameters",
    "greet": "setups.environment_check",
    "open": "session",
    "pasted": "programs.show_source",
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
    "checks": "programs.checks",
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
}
# The names that an exercise may use and must not change; `compiler` is a folder.
NAMES = (*WORDS, *TOOLS, "compiler")
