"""Tables of the modes and of the records, and the links that open the first notebook elsewhere."""

from strategy_clinic.base import project
from strategy_clinic.modes import registry
from strategy_clinic.records import store, version_records, versions_table
from strategy_clinic.rendering import mode_table, sources


def modes() -> str:
    return mode_table.markdown(link="../notebooks/", level=2)


def badges() -> str:
    """Returns the links that open the first notebook elsewhere, or a sentence while there is no address."""
    links = sources.badges("00_start_here")
    return (
        links
        if project.address()
        else "No link opens the notebooks there: the project is not published yet."
    )


def records() -> str:
    """Returns a table of the stored records: what each is of, and how many modes and verdicts it has."""
    lines = [
        "| record | TensorFlow | Keras | `tf_keras` | modes | verdicts |",
        "|---|---|---|---|---|---|",
    ]
    stored = [record for name in store.RUNTIMES if (record := store.read_record(name))]
    for record in stored:
        lines.append(row(record.runtime, record.versions, [each.mode for each in record.verdicts]))
    for version in version_records.version_records():
        shown = [mode for mode, _ in version.verdicts]
        lines.append(row(f"tensorflow-{version.name}", version.versions, shown))
    return "\n".join([*lines, "", f"There are {len(registry.modes())} modes."])


def versions() -> str:
    """Returns a table of the records of other versions, and a sentence for each mode that a version has changed."""
    stored = version_records.version_records()
    lines = [
        "| TensorFlow | Keras | `tf_keras` | recorded on | modes | verdicts | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for version in stored:
        of_keras = [version.versions[each] for each in ("tensorflow", "keras", "tf_keras")]
        counts = [len(version.codes), len(version.verdicts), version.seconds]
        lines.append(f"| {' | '.join(map(str, [*of_keras, version.date, *counts]))} |")
    changed = versions_table.versions_sentences(versions_table.versions_rows(stored))
    sentences = [f"- {sentence}" for sentence in changed]
    return "\n".join([*lines, "", "## What they change", "", *sentences])


def row(name: str, versions: dict[str, str], modes: list[str]) -> str:
    """Returns a line of the table; `modes` has the mode of each verdict."""
    of_keras = [versions.get(each, "") for each in ("tensorflow", "keras", "tf_keras")]
    counts = [len(set(modes)), len(modes)]
    return f"| `{name}` | {' | '.join(map(str, of_keras + counts))} |"
