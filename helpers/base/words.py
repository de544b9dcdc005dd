"""The names that a notebook imports from `helpers`, and the rooms that they come from."""

WORDS = {
    "Claim": "modes.mode",
    "FailureMode": "modes.mode",
    "Proof": "modes.proofs",
    "Setup": "switches.setups",
    "SilentFailure": "modes.checks",
    "Symptom": "modes.mode",
    "build_strategy": "switches.strategies",
    "experiment": "modes.experiments",
    "mark": "modes.trial",
    "observe": "modes.trial",
    "runner": "switches.strategies",
    "text_table": "base.reports",
    "load_ipython_extension": "triage.desk",
    "unload_ipython_extension": "triage.desk",
}
# Modules that notebooks use by their last name, and where they lie.
MODULES = {
    "atlas": "records.atlas",
    "checks": "modes.checks",
    "checkup": "records.checkup",
    "desk": "triage.desk",
    "figures": "panel.figures",
    "formats": "switches.formats",
    "guard": "workshop.guard",
    "hosts": "switches.hosts",
    "machine": "switches.facts",
    "runtime": "switches.runtime",
    "tpu": "switches.tpu",
    "workers": "modes.workers",
}

# What a notebook can import; `compiler` is a room of its own.
NAMES = (*WORDS, *MODULES, "compiler")
