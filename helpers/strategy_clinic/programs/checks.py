"""Health checks that raise where a failure raises nothing. Each can be pasted into a project that has only TensorFlow."""

from typing import Any


class SilentFailure(AssertionError):
    """Something went wrong, and TensorFlow has raised nothing."""


def variable_of(weight: Any) -> Any:
    """Returns the tf.Variable itself, or the one inside a Keras 3 variable."""
    return weight if callable(weight.value) else weight.value


def assert_distributed(strategy: Any, variables: Any) -> None:
    """Raises if a strategy with several devices does not know some of these variables.

    `variables` are `model.variables`; call it right after the model was created or loaded.
    """
    in_scope = strategy.extended.variable_created_in_scope
    outside = [weight for weight in variables if not in_scope(variable_of(weight))]
    if outside and devices_of(strategy) > 1:
        name = type(strategy).__name__.removesuffix("V1").removesuffix("V2")
        raise SilentFailure(
            f"{len(outside)} of {len(variables)} variables were created outside the scope of {name}: "
            "each is on one device, and nothing was said."
        )


def devices_of(strategy: Any) -> int:
    """Returns the number of devices that compute or hold variables, in all processes of the strategy."""
    import tensorflow as tf

    # Some names leave out the job.
    here = tf.DeviceSpec.from_string("/job:localhost/replica:0/task:0")
    names = [*strategy.extended.worker_devices, *strategy.extended.parameter_devices]
    devices = {here.make_merged_spec(tf.DeviceSpec.from_string(name)) for name in names}
    return max(int(strategy.num_replicas_in_sync), len(devices))


def assert_tracked(saved: Any, variables: Any) -> None:
    """Raises if saving `saved` (a Keras model, or a tf.train.Checkpoint) would leave out one of these variables.

    `variables` are those that a restart needs; `tape.watched_variables()` returns the trained ones.
    """
    import tensorflow as tf

    is_model = hasattr(saved, "variables")
    objects = saved.variables if is_model else tf.train.TrackableView(saved).descendants()
    tracked = {id(variable_of(each) if hasattr(each, "value") else each) for each in objects}
    lost = [variable for variable in variables if id(variable_of(variable)) not in tracked]
    if lost:
        names = ", ".join(variable.name.split(":")[0] for variable in lost)
        raise SilentFailure(
            f"{len(lost)} of {len(variables)} variables would not be saved: {names}."
        )


def assert_restored(status: Any) -> None:
    """Raises if `restore` has not changed a variable; `status` is what `tf.train.Checkpoint.restore` returned.

    Call it when everything that should be restored exists: the built model and the built optimizer.
    """
    try:
        status.assert_existing_objects_matched()
    except AssertionError as reason:
        raise SilentFailure(
            "restore left variables as they were, and nothing was raised."
        ) from reason


def assert_gradients_fit(gradients: Any, variables: Any) -> None:
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


def assert_same_global_batch(strategy: Any, per_replica: int, before: int) -> None:
    """Raises if one step takes in more or fewer examples than before a restart.

    `per_replica` is the batch size of each replica; `before` is the number of examples of all replicas together.
    """
    now = per_replica * strategy.num_replicas_in_sync
    if now != before:
        raise SilentFailure(
            f"one step takes in {now} examples on {strategy.num_replicas_in_sync} replicas, "
            f"and {before} before the restart: this is another training, and nothing was said."
        )


def assert_optimizer_resumed(model: Any, steps: int) -> None:
    """Raises if the optimizer of a loaded model does not continue after that many steps.

    Call it in the scope of the strategy, before training: it creates the optimizer's variables if they do not exist yet.
    """
    import tensorflow as tf

    optimizer = model.optimizer
    fresh = type(optimizer).from_config(optimizer.get_config())
    optimizer.build(model.trainable_variables)
    fresh.build(model.trainable_variables)
    at = int(tf.convert_to_tensor(variable_of(optimizer.iterations)))
    has, needs = len(optimizer.variables), len(fresh.variables)
    if at != steps or has != needs:
        raise SilentFailure(
            f"the optimizer is at step {at} of {steps}, with {has} of {needs} variables: "
            "the weights were loaded without its state."
        )


def assert_shared(first: Any, second: Any) -> None:
    """Raises if two layers or models that should share their weights have separate variables.

    Call it once both are built.
    """
    shared = {id(variable_of(weight)) for weight in first.variables}
    copies = [weight for weight in second.variables if id(variable_of(weight)) not in shared]
    if copies or not second.variables:
        raise SilentFailure(
            f"{len(copies)} of {len(second.variables)} variables are not shared: they are copies that train apart."
        )


def assert_loss_of_whole_batch(strategy: Any, losses: Any, whole: Any) -> None:
    """Raises unless the losses of all replicas add up to the loss of the whole batch, as their gradients do.

    `losses` is what `strategy.run` has returned; `whole` is the loss of the whole batch by the same weights.
    """
    import tensorflow as tf

    together = float(tf.reduce_sum(strategy.reduce("SUM", losses, axis=None)))
    whole = float(whole)
    if abs(together - whole) > 1e-3 * abs(whole):
        raise SilentFailure(
            f"the losses of {strategy.num_replicas_in_sync} replicas add up to {together / whole:.2f} times "
            "the loss of the whole batch: so do their gradients, and nothing was said."
        )


def assert_replicas_agree(strategy: Any, variables: Any) -> None:
    """Raises if a variable, of which one value is read and saved, has different values on the replicas.

    `variables` are `model.variables`. Those that TensorFlow combines when they are read (`ON_READ`) may differ.
    """
    import tensorflow as tf

    on_read = tf.VariableSynchronization.ON_READ
    every = map(variable_of, variables)
    chosen = [variable for variable in every if variable.synchronization is not on_read]

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types
    def distances() -> Any:
        copies = strategy.run(lambda: [tf.cast(variable, tf.float32) for variable in chosen])
        means = [strategy.reduce("MEAN", copy, axis=None) for copy in copies]
        first = [strategy.experimental_local_results(copy)[0] for copy in copies]
        return [tf.reduce_max(tf.abs(a - b) / (1 + tf.abs(b))) for a, b in zip(first, means)]

    apart = [variable for variable, far in zip(chosen, distances()) if float(far) > 1e-5]
    if apart:
        names = ", ".join(variable.name.split(":")[0] for variable in apart)
        raise SilentFailure(
            f"{len(apart)} of {len(variables)} variables are not the same on all "
            f"{strategy.num_replicas_in_sync} replicas, and a file keeps one of their values: {names}."
        )


def assert_scope_of_writers(strategy: Any, variables: Any) -> None:
    """Raises if a variable that the replicas write to was created outside of the strategy's scope."""
    in_scope, replicas = strategy.extended.variable_created_in_scope, strategy.num_replicas_in_sync
    outside = [variable for variable in map(variable_of, variables) if not in_scope(variable)]
    if outside and replicas > 1:
        name = outside[0].name.split(":")[0]
        raise SilentFailure(
            f"{replicas} replicas write to {name}, which was made outside their scope: "
            "every one of their updates counts, and nothing was said."
        )


def assert_mean_of_all(strategy: Any, mean: Any, values: Any) -> None:
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


def assert_global_batch(strategy: Any, batch: Any, size: int) -> None:
    """Raises if the replicas do not get `size` examples together in one step.

    `batch` is an element of a distributed dataset: a tensor, or a tuple or dictionary of tensors.
    """
    import tensorflow as tf

    found = len(strategy.gather(tf.nest.flatten(batch)[0], axis=0))
    if found != size:
        raise SilentFailure(f"a step takes in {found} examples, and a global batch is {size}.")


def assert_learning_rate(optimizer: Any, wanted: float) -> None:
    """Raises if the optimizer's next step has another learning rate, such as one from a restored file.

    Call it right before training, for a constant rate, or for the current rate of a Keras 3 schedule.
    """
    import tensorflow as tf

    found = float(tf.convert_to_tensor(optimizer.learning_rate))
    if abs(found - wanted) > 1e-6 * abs(wanted):
        raise SilentFailure(
            f"the optimizer's learning rate is {found:.6g}, and not {wanted:.6g}: a restore replaced it."
        )
