"""How a law is tested: it holds in a copy of the project, and each of its mutations breaks it there.

A law returns its problems. One that takes long yields them: it breaks with the first.
"""

import pytest
from conftest import changed


def edit(name: str, old: str, new: str):
    """A mutation that changes one place of one file."""

    def mutation(root):
        changed(root / name, old, new, 1)

    mutation.__name__ = f"{old.strip()[:30]} -> {new.strip()[:30]}"
    return mutation


def compared_text(notebook) -> str:
    """What nbval compares: all text of the cells that are not excused."""
    kept = [
        cell
        for cell in notebook.cells
        if "nbval-ignore-output" not in cell.metadata.get("tags", [])
    ]
    outputs = [output for cell in kept for output in cell.get("outputs", [])]
    return "\n".join(
        output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in outputs
    )


def all_tests_of(module: dict) -> tuple:
    """The tests of a module's functions `law_...`, and of its MUTATIONS."""
    laws = {name: law for name, law in module.items() if name.startswith("law_")}
    mutations = module["MUTATIONS"]

    @pytest.mark.parametrize("law", laws)
    def test_law(project, law):
        """In a copy, which is what mutations are made in: that it breaks there is their doing."""
        assert list(laws[law]()) == []

    @pytest.mark.parametrize(
        "law, mutation", mutations, ids=lambda value: getattr(value, "__name__", value)
    )
    def test_mutation_breaks_law(project, law, mutation):
        mutation(project)
        assert next(iter(laws[law]()), None), "the law holds"

    def test_every_law_has_a_mutation():
        assert {law for law, _ in mutations} == set(laws)

    return test_law, test_mutation_breaks_law, test_every_law_has_a_mutation
