"""A TPU for a program that asks for one: TensorFlow's TPUStrategy on cores that are described. Runs in the reader's process."""

import contextlib

from ..setups import runtime, tpu
from .notes import SETTINGS, acted, note, where

CORES = 8
# By the cores of a replica, the block that they form.
BLOCKS = {1: (1, 1, 1, 1), 2: (1, 1, 1, 2), 4: (1, 2, 1, 2), 8: (2, 2, 1, 2)}


def describe_tpu():
    """Stands in for the names by which programs reach a TPU, where none is attached; an empty name is none (fm17)."""
    import tensorflow as tf

    if (
        runtime.tpu_attached() or SETTINGS.library
    ):  # the clinic's own programs describe one themselves
        return
    resolver, strategy = tpu.resolver_class(), strategy_on_described_cores()
    resolvers, experimental = tf.distribute.cluster_resolver, tf.tpu.experimental
    resolvers.TPUClusterResolver = resolver_for(resolver, resolvers.TPUClusterResolver)
    connect, initialize = (
        tf.config.experimental_connect_to_cluster,
        experimental.initialize_tpu_system,
    )
    tf.config.experimental_connect_to_cluster = unless(resolver, connect, lambda _: None)
    experimental.initialize_tpu_system = unless(resolver, initialize, lambda each: each.described)
    tf.distribute.TPUStrategy = strategy


def resolver_for(described, plain):
    def resolve(tpu_name=None, *args, **options):
        name = options.pop("tpu", tpu_name)
        if not name:
            return plain(name, *args, **options)
        acted(eight_devices)
        note("described", at=where())
        return described(runtime.devices(CORES), tpu.topology(tpu.DESCRIBED[-1]))

    return resolve


def unless(kind, plain, instead):
    def called(*args, **options):
        given = [each for each in (*args, *options.values()) if isinstance(each, kind)]
        return instead(given[0]) if given else plain(*args, **options)

    return called


def eight_devices():
    """As many as the TPU has cores, while TensorFlow is not up yet."""
    import tensorflow as tf

    with contextlib.suppress(RuntimeError):
        runtime.split(tf.config.list_physical_devices("CPU"), {})


def strategy_on_described_cores():
    """A class, since programs ask whether a strategy is one of these; what it makes is TensorFlow's, as tpu.py has it."""
    import tensorflow as tf

    plain = tf.distribute.TPUStrategy
    tpu.strategy_class()  # made while its base is still TensorFlow's own

    class Kind(type(plain)):
        def __instancecheck__(cls, instance):
            return isinstance(instance, plain)

    class DescribedTPUStrategy(plain, metaclass=Kind):
        def __new__(cls, resolver=None, experimental_device_assignment=None, **options):
            per_replica = getattr(experimental_device_assignment, "num_cores_per_replica", 1)
            spmd = options.get("experimental_spmd_xla_partitioning", False)
            replicas = 1 if SETTINGS.devices == 1 else 0  # all of them
            return tpu.strategy("", BLOCKS[per_replica], spmd, replicas)

    return DescribedTPUStrategy
