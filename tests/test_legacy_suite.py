"""tf_keras ships a test suite for saving and loading under strategies; where it covers our matrix, it has to agree."""

import ast
import json
from pathlib import Path

import nbformat
import pytest
from strategy_clinic.base import files
from strategy_clinic.base.free_names import needed, unparsed
from strategy_clinic.processes import notebook_job
from strategy_clinic.rendering import sources

pytestmark = pytest.mark.slow

FM26 = files.notebooks() / "fm26_replica_count_changed.ipynb"


def as_far_as_needed(notebook, names: set):
    """The notebook's parameters, and of its code no more than makes these names."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    parameters = next(cell for cell in cells if "parameters" in sources.tags(cell))
    later = cells[cells.index(parameters) + 1 :]
    code = unparsed(needed(ast.parse("\n".join(cell.source for cell in later)).body, names))
    notebook.cells = [parameters, nbformat.v4.new_code_cell(code)]
    return notebook


def test_our_matrix_agrees_with_the_suite_of_keras_2(tmp_path):
    answer = tmp_path / "answer.json"
    code = (
        f"import sys\n\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport legacy_suite\n\n"
    )
    code += f"legacy_suite.report(MATRIX, {str(answer)!r})"
    notebook = as_far_as_needed(nbformat.read(FM26, as_version=4), {"MATRIX", "setup"})
    notebook.cells.append(nbformat.v4.new_code_cell(code))
    ended = notebook_job.run_notebook(nbformat.writes(notebook), {"keras": 2}, 600)
    assert ended["end"] == "finished", ended["failure"]
    found = json.loads(answer.read_text())
    assert len(found["cells"]) == 6 * 5
    assert [cell for cell in found["cells"] if cell[-1] != cell[-2]] == []
    assert not found["forgotten"], "the suite passes a loader that loads nothing"
