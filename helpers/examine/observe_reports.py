"""What `evaluate` of Keras reports, and where its metrics were chosen. Runs in the reader's process."""

from .hooks import definer, hook
from .notes import note, once, where

COMPILED: dict = {}  # by the id of a model, where it was compiled


def watch_reports(model):
    hook(definer(model, "compile"), "compile", None, compiled_at)
    hook(definer(model, "evaluate"), "evaluate", None, evaluated, "evaluate")


def compiled_at(_, args, options):
    COMPILED[id(args[0])] = where()


def evaluated(found, args, options):
    model = args[0]
    told = found if isinstance(found, dict) else model.get_metrics_result()
    values = {name: float(value) for name, value in told.items() if not isinstance(value, dict)}
    if once("reported", id(model)):
        note("reported", values=values, compiled=COMPILED.get(id(model), []), at=where())
