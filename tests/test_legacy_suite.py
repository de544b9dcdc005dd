"""tf_keras ships a test suite for saving and loading under strategies; where it covers our matrix, it has to agree."""

import json
from pathlib import Path

import nbformat

from helpers import jobs, sources

FM26 = sources.NOTEBOOKS / "fm26_replica_count_changed.ipynb"


def test_our_matrix_agrees_with_the_suite_of_keras_2(tmp_path):
    answer = tmp_path / "answer.json"
    code = (
        f"import sys\n\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport legacy_suite\n\n"
    )
    code += f"legacy_suite.report(MATRIX, {str(answer)!r})"
    notebook = nbformat.read(FM26, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(code))
    ended = jobs.run(nbformat.writes(notebook), {"keras": 2}, 600)
    assert ended["end"] == "finished", ended["failure"]
    found = json.loads(answer.read_text())
    assert len(found["cells"]) == 6 * 5
    assert [cell for cell in found["cells"] if cell[-1] != cell[-2]] == []
    assert not found["forgotten"], "the suite passes a loader that loads nothing"
