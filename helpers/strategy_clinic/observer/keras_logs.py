"""What `fit` and `evaluate` of Keras report, and where their metrics were chosen. Runs in the reader's process."""

from .notes import count, note, where
from .patching import definer, hook

COMPILED: dict = {}  # by the id of a model, where it was compiled
MOST_REPORTS = 4  # of one model, in one way


def watch_reports(model):
    hook(definer(model, "compile"), "compile", None, metrics_chosen)
    hook(definer(model, "fit"), "fit", None, fitted, "report")
    hook(definer(model, "evaluate"), "evaluate", None, evaluated, "report")


def metrics_chosen(_, args, options):
    COMPILED[id(args[0])] = where()


def fitted(ended, args, options):
    """The first epoch, since later ones start from other weights."""
    told(args[0], {name: values[0] for name, values in ended.history.items() if values})


def evaluated(found, args, options):
    told(args[0], found if isinstance(found, dict) else args[0].get_metrics_result())


def told(model, reported: dict):
    values = {name: float(each) for name, each in reported.items() if not isinstance(each, dict)}
    if count("reported", id(model)) <= MOST_REPORTS:
        note("reported", values=values, compiled=COMPILED.get(id(model), []), at=where())
