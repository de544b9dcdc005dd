"""Facts as the observer writes them, and how a program with servers begins, for the tests of the examiner."""

from strategy_clinic.examiner.recording import Observation
from strategy_clinic.examiner.rules import findings

LINE = [["/program/train.py", 7, "main"]]
OTHER = [["/program/train.py", 20, "main"]]
# One text for all tasks: workers and servers wait here until the chief has ended.
AS_A_TASK = """\
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        address = {"job_name": resolver.task_type, "task_index": resolver.task_id}
        tf.distribute.Server(resolver.cluster_spec(), protocol="grpc", **address).join()"""


def variable(number, **changes):
    usual = {"name": f"v{number}", "shape": [3], "dtype": "float32", "maker": "layer"}
    usual |= {"copies": 0, "parts": [], "at": LINE, "number": number}
    return {"fact": "variable"} | usual | changes


def fact(kind, **facts):
    return {"fact": kind, "at": LINE} | facts


def run(*facts, devices=2, **options):
    return Observation("watched", devices, tuple(facts), **options)


def modes(*runs):
    return [(each.mode, each.line) for each in findings.findings_of(list(runs))]


def lost(**changes):
    return {"number": 1, "trained": False, "read": True, "changed": True, "now": 2.0} | changes


def saved(held=(2,), left=(), **changes):
    usual = {"what": "checkpoint", "path": "ck-1", "held": list(held), "left": list(left)}
    return fact("saved", **usual | {"optimizers": [], "made": [], "at": OTHER}) | changes


def strategy(replicas=2):
    return fact("strategy", name="MirroredStrategy", replicas=replicas)


def state(**changes):
    usual = {"kind": "Adam", "trains": [1], "steps": 3, "variables": [4, 5, 6], "at": "0.1"}
    return usual | changes


def updated(**changes):
    return fact("updated", gradients=2, missing=0, at=OTHER) | changes


def ended(**changes):
    return {"fact": "ended", "how": "finished", "values": {}, "apart": [], "late": []} | changes


def loaded(**changes):
    usual = {"how": "load", "path": "ck-1", "numbers": [2], "single": [2], "scope": True}
    return fact("loaded", **usual | {"replicas": 2} | changes)


def written(**changes):
    return fact("written", **{"number": 1, "by": "user", "replicas": 2, "at": OTHER} | changes)


MINE = variable(1, maker="user")
