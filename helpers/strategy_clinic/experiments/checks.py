"""Health checks that make silent failures raise. Each can be pasted into a project that has nothing but TensorFlow."""


class SilentFailure(AssertionError):
    """Something went wrong without an exception of its own."""


def variable_of(weight):
    """The tf.Variable itself, or the one inside a Keras 3 variable."""
    return weight if callable(weight.value) else weight.value


def assert_distributed(strategy, variables):
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


def assert_restored(status):
    """Raises if `restore` left a variable as it was; `status` is what `tf.train.Checkpoint.restore` returned.

    Call it once everything that shall be restored exists: built model, built optimizer.
    """
    try:
        status.assert_existing_objects_matched()
    except AssertionError as reason:
        raise SilentFailure(
            "restore left variables as they were, and nothing was raised."
        ) from reason


def assert_gradients_fit(gradients, variables):
    """Raises unless there is one gradient, of the right shape, for each variable.

    Call it right before `apply_gradients(zip(gradients, variables))`: `zip` stops at the shorter list, an optimizer
    skips a gradient that is None, and broadcasting makes a sum of two shapes. Nothing is said in any of these cases.
    """
    if len(gradients) != len(variables):
        raise SilentFailure(
            f"{len(gradients)} gradients for {len(variables)} variables: zip stops at the shorter list."
        )
    for gradient, variable in zip(gradients, variables):
        name, shape = variable.name.split(":")[0], tuple(variable.shape)
        if gradient is None:
            raise SilentFailure(f"the gradient of {name} is None: this loss does not depend on it.")
        if tuple(gradient.shape) != shape:
            raise SilentFailure(
                f"the gradient of {name} has shape {tuple(gradient.shape)}, and {name} has {shape}."
            )


def assert_same_global_batch(strategy, per_replica, before):
    """Raises if one step takes in another number of examples than it did before a restart.

    `per_replica` is the size of the batch that each replica gets; `before` counts the examples of all replicas together.
    """
    now = per_replica * strategy.num_replicas_in_sync
    if now != before:
        raise SilentFailure(
            f"one step takes in {now} examples on {strategy.num_replicas_in_sync} replicas, "
            f"and {before} before the restart: this is another training, and nothing was said."
        )


def assert_optimizer_resumed(model, steps):
    """Raises if the optimizer of a loaded model does not go on where it was after that many steps.

    Call it in the scope of the strategy, before training: it makes the optimizer's variables if they do not exist yet.
    """
    import tensorflow as tf

    optimizer = model.optimizer
    fresh = type(optimizer).from_config(optimizer.get_config())
    for each in (optimizer, fresh):
        each.build(model.trainable_variables)
    at = int(tf.convert_to_tensor(variable_of(optimizer.iterations)))
    has, needs = len(optimizer.variables), len(fresh.variables)
    if at != steps or has != needs:
        raise SilentFailure(
            f"the optimizer is at step {at} of {steps}, with {has} of {needs} variables: "
            "the weights were loaded without its state."
        )


def assert_shared(first, second):
    """Raises if two layers or models that are meant to share their weights have variables of their own.

    Call it once both are built.
    """
    theirs = {id(variable_of(variable)) for variable in first.variables}
    own = [weight for weight in second.variables if id(variable_of(weight)) not in theirs]
    if own or not second.variables:
        raise SilentFailure(
            f"{len(own)} of {len(second.variables)} variables are not shared: they are copies that train apart."
        )


def assert_loss_of_whole_batch(strategy, losses, whole):
    """Raises unless the losses of all replicas add up to the loss of the whole batch, as their gradients do.

    `losses` is what `strategy.run` has returned for the loss, `whole` that of the whole batch by the same weights.
    """
    import tensorflow as tf

    together, whole = tf.reduce_sum(strategy.reduce("SUM", losses, axis=None)), float(whole)
    if abs(float(together) - whole) > 1e-3 * abs(whole):
        raise SilentFailure(
            f"the losses of {strategy.num_replicas_in_sync} replicas add up to {float(together) / whole:.2f} times "
            "the loss of the whole batch: so do their gradients, and nothing was said."
        )


def assert_replicas_agree(strategy, variables):
    """Raises if a variable, which is one for whoever reads or saves it, has another value on each replica.

    `variables` are `model.variables`. One that is made to differ, and is put together when read (`ON_READ`), may.
    """
    import tensorflow as tf

    on_read = tf.VariableSynchronization.ON_READ
    chosen = [each for each in map(variable_of, variables) if each.synchronization is not on_read]

    @tf.function
    def spreads():
        copies = strategy.run(lambda: [tf.cast(each, tf.float32) for each in chosen])
        means = [strategy.reduce("MEAN", each, axis=None) for each in copies]
        mine = [strategy.experimental_local_results(each)[0] for each in copies]
        return [tf.reduce_max(tf.abs(a - b) / (1 + tf.abs(b))) for a, b in zip(mine, means)]

    apart = [each for each, distance in zip(chosen, spreads()) if float(distance) > 1e-5]
    if apart:
        names = ", ".join(variable.name.split(":")[0] for variable in apart)
        raise SilentFailure(
            f"{len(apart)} of {len(variables)} variables are not the same on all "
            f"{strategy.num_replicas_in_sync} replicas, and a file keeps one of their values: {names}."
        )


def assert_scope_of_writers(strategy, variables):
    """Raises if a variable was made outside the scope of the strategy whose replicas are going to write to it."""
    known, replicas = strategy.extended.variable_created_in_scope, strategy.num_replicas_in_sync
    outside = [variable_of(each) for each in variables if not known(variable_of(each))]
    if outside and replicas > 1:
        raise SilentFailure(
            f"{replicas} replicas write to {outside[0].name.split(':')[0]}, which was made outside their scope: "
            "every one of their updates counts, and nothing was said."
        )


def assert_mean_of_all(strategy, mean, values):
    """Raises if `mean` is not the mean over all examples of all replicas.

    `values` is what `strategy.run` returned: a tensor with one value per example, on each replica.
    """
    import tensorflow as tf

    everything = strategy.gather(values, axis=0)
    wanted, found = tf.reduce_mean(everything), tf.cast(mean, everything.dtype)
    if not tf.abs(found - wanted) <= 1e-5 * (1 + tf.abs(wanted)):  # nor if it is not a number
        raise SilentFailure(
            f"the mean is {float(found):.4f}, and that of all {len(everything)} examples is "
            f"{float(wanted):.4f}: a replica with few of them has weighed as much as a full one."
        )


def assert_global_batch(strategy, batch, size):
    """Raises if the parts that all replicas get of one step are not `size` examples together.

    `batch` is what a distributed dataset gives: a tensor, or a tuple or dictionary of them.
    """
    import tensorflow as tf

    found = len(strategy.gather(tf.nest.flatten(batch)[0], axis=0))
    if found != size:
        raise SilentFailure(f"a step takes in {found} examples, and a global batch is {size}.")


def assert_learning_rate(optimizer, wanted):
    """Raises if the optimizer would take its next step at another learning rate, such as one that a restore has brought.

    Call it right before training; it is for a constant rate, and for the present one of a schedule of Keras 3.
    """
    import tensorflow as tf

    found = float(tf.convert_to_tensor(optimizer.learning_rate))
    if abs(found - wanted) > 1e-6 * abs(wanted):
        raise SilentFailure(
            f"the optimizer's learning rate is {found:.6g}, and not {wanted:.6g}: a restore has brought another one."
        )
