"""What is recorded is recorded of the notebooks as they are now. Each law holds for the project, and each is broken below."""

import json
from pathlib import Path

from law import all_tests_of, compared_text, edit
from strategy_clinic.base import files
from strategy_clinic.compiler import programs
from strategy_clinic.modes import registry
from strategy_clinic.records import atlas, store, version_records, versions_table
from strategy_clinic.rendering import sources
from strategy_clinic.rendering.mode_notebooks import ModeNotebook
from strategy_clinic.setups import runtime, tpu


def law_records() -> list[str]:
    """The records of a plain machine hold every mode as its notebook is now, under all of its setups, as declared."""
    return [
        problem
        for keras in runtime.KERAS_VERSIONS
        for record in [store.read_record(f"cpu-keras{keras}") or store.new_record(keras)]
        for mode in registry.modes()
        for problem in recorded(mode, keras, record)
    ]


def recorded(mode, keras: int, record: store.Record) -> list[str]:
    wanted = ModeNotebook(mode, files.ROOT / mode.notebook)
    verdicts = record.of_mode(mode.id)
    problems = [] if record.holds(wanted) else ["is not in the record as it is now"]
    if set(verdicts) != set(store.grid_of(mode, store.own_setup(wanted.notebook, keras))):
        problems.append("is recorded under other setups than those that matter to it")
    problems += [f"disagrees: {verdict}" for verdict in verdicts.values() if not verdict.agrees]
    return [f"{mode.id}, Keras {keras}: {each}; run: clinic record" for each in problems]


def law_compiled() -> list[str]:
    """What a notebook shows of the TPU compiler was recorded for the notebook as it is now."""
    record = programs.stored()
    shown = [mode for mode in registry.modes() if "COMPILED" in source_of(mode).read_text()]
    return [
        f"{mode.id} was not compiled as it is now; run: clinic compile {mode.id} --tpu all"
        for mode in shown
        if record.modes.get(mode.id, {}).get("code")
        != store.code_of(sources.stored_notebook(files.ROOT / mode.notebook))
        or {line.tpu for line in record.lines if line.mode == mode.id} != set(tpu.TPUS)
    ]


def source_of(mode) -> Path:
    return files.page_source(f"{mode.id}_{mode.slug}")


def law_atlas() -> list[str]:
    """The words of the stored pictures are those of the records and of the version records."""
    stored = sources.stored_notebook(files.notebooks() / "atlas.ipynb")
    rows = versions_table.versions_rows(version_records.version_records())
    sentences = atlas.atlas_sentences(atlas.atlas_rows()) + versions_table.versions_sentences(rows)
    return [line for line in sentences if line not in compared_text(stored)]


FM25 = "notebooks/fm25_load_outside_scope"


CPU3 = "notebooks/records/cpu-keras3.json"


def lose_a_verdict(root):
    path = root / CPU3
    record = json.loads(path.read_text())
    record["verdicts"].pop()
    path.write_text(json.dumps(record))


MUTATIONS = [
    ("law_records", edit(f"{FM25}.ipynb", r"\ndevices = 2", r"\ndevices = 4")),
    ("law_records", edit(CPU3, '"agrees": true', '"agrees": false')),
    ("law_records", edit(CPU3, '"fm25": {"code": "', '"fm25": {"code": "0')),
    ("law_records", lose_a_verdict),
    ("law_compiled", edit("notebooks/fm24_xla_refuses.ipynb", "60000, 60000", "60001, 60000")),
    (
        "law_compiled",
        edit("notebooks/records/compiled.json", '"fm24": {"code": "', '"fm24": {"code": "0'),
    ),
    ("law_atlas", edit(CPU3, '"broken": "wrong"', '"broken": "works"')),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())
