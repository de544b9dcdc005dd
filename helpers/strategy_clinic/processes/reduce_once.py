"""One all-reduce on all devices of this machine, as a process of its own: `python -m strategy_clinic.processes.reduce_once`."""

from typing import Any

from .request_reply import read_question, write_answer

SIZE = 1_000_000  # numbers that are added up: more than fit into what is copied at once


def reduce_once(kind: str, count: int, operation: str) -> str:
    """Returns what is wrong with the sum over the devices, as it is on each of them; nothing if it is right."""
    import tensorflow as tf

    names = devices(kind, count)
    operations = {"cross_device_ops": getattr(tf.distribute, operation)()} if operation else {}
    strategy = tf.distribute.MirroredStrategy(names, **operations)

    def of_replica() -> Any:
        context = tf.distribute.get_replica_context()
        number = tf.cast(context.replica_id_in_sync_group + 1, tf.float32)
        return context.all_reduce("sum", tf.fill([SIZE], number))

    add_up = tf.function(lambda: strategy.run(of_replica))
    expected = count * (count + 1) / 2
    sums = [each.numpy() for each in strategy.experimental_local_results(add_up())]
    wrong = [float(each[each != expected][0]) for each in sums if (each != expected).any()]
    return f"the sum is {wrong[0]} and should be {expected}" if wrong else ""


def compute_alone(kind: str, count: int) -> str:
    """Returns what is wrong with a product of matrices on each device; nothing if it is right."""
    import tensorflow as tf

    for name in devices(kind, count):
        with tf.device(name):
            product = tf.matmul(tf.ones((256, 256)), tf.ones((256, 256)))
        if (product.numpy() != 256).any():
            return f"{name} computes {float(product.numpy().min())} and should compute 256.0"
    return ""


def devices(kind: str, count: int) -> list[str]:
    """Returns the names of all GPUs, or of as many parts of the CPU, which it splits."""
    import tensorflow as tf

    if kind == "CPU":
        parts = [tf.config.LogicalDeviceConfiguration()] * count
        processor = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(processor, parts)
    return [f"{kind}:{number}" for number in range(count)]


def main() -> None:
    asked = read_question()
    where = asked["kind"], asked["count"]
    wrong = compute_alone(*where) if asked["alone"] else reduce_once(*where, asked["operation"])
    write_answer(asked["answer"], wrong)


if __name__ == "__main__":
    main()
