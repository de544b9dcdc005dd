"""The names that a notebook imports from `helpers`, and the rooms that they come from."""

WORDS = {
    "Claim": "modes.mode",
    "FailureMode": "modes.mode",
    "Proof": "modes.proofs",
    "Setup": "switches.setups",
    "SilentFailure": "modes.checks",
    "Symptom": "modes.mode",
    "Unavailable": "base.refusals",
    "build_strategy": "switches.strategies",
    "experiment": "modes.experiments",
    "greet": "switches.hosts",
    "observe": "modes.trial",
    "open": "panel.clinic",
    "pasted": "modes.paste",
    "runner": "switches.strategies",
    "text_table": "base.reports",
    "watching": "examine.faces.inside",
}
# What IPython asks a package for.
EXTENSION = dict.fromkeys(
    ("load_ipython_extension", "unload_ipython_extension"), "examine.faces.magic"
)
# Modules that notebooks use by their last name, and where they lie: first those that exercises are made of.
TOOLS = {
    "checks": "modes.checks",
    "figures": "panel.figures",
    "formats": "switches.formats",
    "machine": "switches.facts",
}
MODULES = TOOLS | {
    "atlas": "records.atlas",
    "checkup": "records.checkup",
    "desk": "triage.desk",
    "examiner": "examine.faces.page",
    "finder": "panel.finder",
    "runtime": "switches.runtime",
    "tpu": "switches.tpu",
    "workers": "modes.workers",
}
# What an exercise is given, and must leave as it is; `compiler` is a room of its own.
NAMES = (*WORDS, *TOOLS, "compiler")
