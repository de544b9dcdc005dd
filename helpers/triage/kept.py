"""The index of all texts by which modes are known, kept in index.json: working it out anew takes a tenth of a second.

`python -m helpers.triage.kept` writes it. Where the texts are others than those of the file, the index is worked out.
"""

import json
import zlib
from pathlib import Path

from ..base import files
from . import known, likeness


def index_for(entries: tuple[known.Wording, ...]) -> likeness.Index:
    told = likeness.all_texts(entries)
    kept = json.loads(index_file().read_text()) if index_file().exists() else {}
    if kept.pop("of", None) != stamp(told):
        return likeness.index_of(told)
    spans = {None if mode == likeness.NO_MODE else mode: at for mode, at in kept["spans"].items()}
    return likeness.Index(**kept | {"spans": spans})


def index_file() -> Path:
    return files.helpers() / "triage" / "index.json"


def stamp(told: list[tuple]) -> int:
    """What the index is of: these texts, read with this vocabulary."""
    return zlib.crc32(json.dumps([told, known.read_vocabulary()]).encode())


def index_text() -> str:
    told = likeness.all_texts(known.wordings())
    index = likeness.index_of(told)
    spans = {mode or likeness.NO_MODE: at for mode, at in index.spans.items()}
    lines = [f"{json.dumps(trait)}: {json.dumps(at)}" for trait, at in index.holders.items()]
    begun = json.dumps({"of": stamp(told), "spans": spans, "weights": index.weights})
    return begun[:-1] + ',\n"holders": {\n' + ",\n".join(sorted(lines)) + "\n}}\n"


if __name__ == "__main__":
    index_file().write_text(index_text())
