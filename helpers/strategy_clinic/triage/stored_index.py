"""The index of all texts by which modes are known, kept in index.json: working it out anew takes a tenth of a second.

`python -m strategy_clinic.triage.stored_index` writes it. Where the texts are others than those of the file, the index is
worked out.
"""

import json
import zlib
from pathlib import Path

from ..base import files
from . import similarity, wordings


def index_for(entries: tuple[wordings.Wording, ...]) -> similarity.Index:
    told = similarity.all_texts(entries)
    kept = json.loads(index_file().read_text()) if index_file().exists() else {}
    if kept.pop("of", None) != stamp(told):
        return similarity.index_of(told)
    spans = {None if mode == similarity.NO_MODE else mode: at for mode, at in kept["spans"].items()}
    return similarity.Index(**kept | {"spans": spans})


def index_file() -> Path:
    return files.package() / "triage" / "index.json"


def stamp(told: list[tuple]) -> int:
    """What the index is of: these texts, read with this vocabulary."""
    return zlib.crc32(json.dumps([told, wordings.read_vocabulary()]).encode())


def index_text() -> str:
    told = similarity.all_texts(wordings.wordings())
    index = similarity.index_of(told)
    spans = {mode or similarity.NO_MODE: at for mode, at in index.spans.items()}
    lines = [f"{json.dumps(trait)}: {json.dumps(at)}" for trait, at in index.holders.items()]
    begun = json.dumps({"of": stamp(told), "spans": spans, "weights": index.weights})
    return begun[:-1] + ',\n"holders": {\n' + ",\n".join(sorted(lines)) + "\n}}\n"


if __name__ == "__main__":
    index_file().write_text(index_text())
