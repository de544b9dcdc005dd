"""The names that a notebook imports from `strategy_clinic`, and the modules that define them."""

WORDS = {
    "Claim": "modes.documents",
    "Document": "modes.documents",
    "FailureMode": "modes.failure_mode",
    "Setup": "setups.parameters",
    "SilentFailure": "programs.checks",
    "Symptom": "modes.failure_mode",
    "Unavailable": "base.errors",
    "build_strategy": "setups.parameters",
    "document": "document_session",
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
# Modules that notebooks use by their last name.
MODULES = {
    "atlas": "records.atlas",
    "checks": "programs.checks",
    "checkup": "records.runtime_check",
    "desk": "triage.widget",
    "examiner": "examiner.frontends.widget",
    "figures": "panel.figures",
    "finder": "panel.mode_finder",
    "formats": "setups.formats",
    "machine": "setups.machine_report",
    "prediction": "examiner.frontends.prediction",
    "runtime": "setups.runtime",
    "tpu": "setups.tpu",
}
NAMES = (*WORDS, *MODULES, "compiler")  # which is a folder
