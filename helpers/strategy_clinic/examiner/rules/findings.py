"""What runs of a program show: findings, the likeliest first. No TensorFlow here: facts are enough."""

from ..recording import Finding, Observation
from . import devices, loading, rates, reports, silent, tracing
from .divergence import Parting
from .loud import findings_of_errors

# One rule for each silent mode that facts can show.
RULES = {
    "fm05": silent.untracked,
    "fm08": silent.restored_nothing,
    "fm09": silent.slots_missing,
    "fm11": silent.nothing_applied,
    "fm19": silent.mean_of_means,
    "fm21": devices.batch_grows,
    "fm23": silent.written_by_replicas,
    "fm25": loading.loaded_outside,
    "fm26": loading.other_batch_after_loading,
    "fm29": loading.optimizer_anew,
    "fm35": loading.restored_too_early,
    "fm37": devices.scaled_gradient,
    "fm38": silent.replicas_apart,
    "fm43": tracing.traced_again,
    "fm44": reports.reported_otherwise,
    "fm46": rates.rate_replaced,
}
# The same modes where replicas are processes, which see no more than their own part each.
OVER_PROCESSES = [devices.processes_apart]


def findings_of(runs: list[Observation], partings: list[Parting] = ()) -> list[Finding]:
    """What is raised comes first; of several findings of one mode on one line, the first stays."""
    found = findings_of_errors(runs)
    for rule in (*RULES.values(), *OVER_PROCESSES):
        found += rule(runs, list(partings))
    kept = {}
    for each in found:
        kept.setdefault((each.mode, each.file, each.line), each)
    return list(kept.values())
