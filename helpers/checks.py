"""Health checks that make silent failures raise. Each can be pasted into a project that has nothing but TensorFlow."""


class SilentFailure(AssertionError):
    """Something went wrong without an exception of its own."""


def variable_of(weight):
    """The tf.Variable itself, or the one inside a Keras 3 variable."""
    return weight if callable(weight.value) else weight.value


def assert_distributed(variables, strategy):
    """Raises if a strategy with several devices does not know some of these variables.

    `variables` are `model.variables`; call it right after the model was made or loaded.
    """
    known = strategy.extended.variable_created_in_scope
    outside = [weight for weight in variables if not known(variable_of(weight))]
    if outside and devices_of(strategy) > 1:
        raise SilentFailure(
            f"{len(outside)} of {len(variables)} variables live outside the scope of "
            f"{type(strategy).__name__.removesuffix('V1').removesuffix('V2')}: each is on one device, and nothing was said."
        )


def devices_of(strategy) -> int:
    """How many devices compute or keep variables, in this process and in those that it works with."""
    import tensorflow as tf

    here = tf.DeviceSpec.from_string(
        "/job:localhost/replica:0/task:0"
    )  # which some names leave out
    names = [*strategy.extended.worker_devices, *strategy.extended.parameter_devices]
    own = {here.make_merged_spec(tf.DeviceSpec.from_string(name)) for name in names}
    return max(strategy.num_replicas_in_sync, len(own))


def assert_tracked(saved, variables):
    """Raises if saving `saved` (a Keras model, or a tf.train.Checkpoint) would leave out one of these variables.

    `variables` are those that a restart must find again; `tape.watched_variables()` names the trained ones.
    """
    import tensorflow as tf

    owned = (
        saved.variables
        if hasattr(saved, "variables")
        else tf.train.TrackableView(saved).descendants()
    )
    kept = {id(item) for item in owned} | {id(variable_of(v)) for v in owned if hasattr(v, "value")}
    lost = [
        variable
        for variable in variables
        if id(variable) not in kept and id(variable_of(variable)) not in kept
    ]
    if lost:
        names = ", ".join(variable.name.split(":")[0] for variable in lost)
        raise SilentFailure(
            f"{len(lost)} of {len(variables)} variables would not be saved: {names}."
        )


def assert_same_values(what, before, after, tolerance=1e-6):
    """Raises if two arrays, one from before a restart and one from after it, differ."""
    import tensorflow as tf

    before, after = tf.convert_to_tensor(before), tf.convert_to_tensor(after)
    same = before.shape == after.shape and bool(
        tf.reduce_all(tf.abs(after - before) <= tolerance * (1 + tf.abs(before)))
    )
    if not same:
        raise SilentFailure(f"{what} differ after the restart, and nothing was raised.")
