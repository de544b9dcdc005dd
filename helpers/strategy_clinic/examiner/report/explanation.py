"""What is behind the name of a finding: a failure mode with its notebook, or a promise that no notebook explains."""

from dataclasses import dataclass

from ...base import files
from ...modes.registry import mode_by_id
from ...triage.answer_text import notebook_name


@dataclass(frozen=True)
class Explanation:
    """What reports say about all findings of one name."""

    slug: str
    title: str
    fix: str
    notebook: str = ""  # its file name, if there is one

    @property
    def path(self) -> str:
        return files.shown_notebook(self.notebook) if self.notebook else ""


# Findings that runs show although no rule says why.
WITHOUT_NOTEBOOK = {
    "diverges": Explanation(
        "devices_disagree",
        "The program trains another model on another number of devices",
        "Compare what each replica computes from its part of the batch with what one device computes from the whole batch.",
    ),
    "framework": Explanation(
        "framework_disagrees",
        "TensorFlow or Keras computes something else on several replicas, and the program is right",
        "Follow what the finding says, or use the other version of Keras.",
    ),
    "restart": Explanation(
        "restart_disagrees",
        "A program that was killed and started again does not go on as if it had never been stopped",
        "Save what the next step reads (weights, optimizer, step, learning rate, counters), and load it before that step.",
    ),
    "hangs": Explanation(
        "program_waits",
        "The program does not end: it waits for something that does not come",
        "Let what these lines wait for always come: the same steps and saves in all workers, an answer from every process.",
    ),
}


def explanation_of(mode: str) -> Explanation:
    if mode in WITHOUT_NOTEBOOK:
        return WITHOUT_NOTEBOOK[mode]
    declared = mode_by_id(mode)
    return Explanation(declared.slug, declared.title, declared.fix, notebook_name(mode))
