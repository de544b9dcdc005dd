"""Learning rates that a restore replaces. Runs in the reader's process."""

from . import variables
from .notes import note, where
from .patching import definer, hook

RATES_BEFORE: list = []  # optimizers that are about to be restored, each with its learning rate


def watch_checkpoint_rates():
    import tensorflow as tf

    for name in ("restore", "read"):
        hook(tf.train.Checkpoint, name, about_to_restore, restored, "rates")


def watch_model_rates(model):
    hook(definer(model, "load_weights"), "load_weights", loading, restored, "rates")


def about_to_restore(args, options):
    import tensorflow as tf

    keep_rates(tf.train.TrackableView(args[0]).descendants())


def loading(args, options):
    keep_rates([getattr(args[0], "optimizer", None)])


def keep_rates(things):
    optimizers = [each for each in things if hasattr(each, "apply_gradients")]
    RATES_BEFORE[:] = [(each, rate_of(each)) for each in optimizers]


def rate_of(optimizer):
    """The learning rate that is kept in a variable; none of a schedule, which no file can replace."""
    with variables.outside_graphs():
        rate = optimizer.get_config().get("learning_rate")
    return float(rate) if isinstance(rate, (int, float)) or hasattr(rate, "dtype") else None


def restored(_, args, options):
    for optimizer, before in RATES_BEFORE:
        after = rate_of(optimizer)
        if before is not None and after is not None and abs(before - after) > 1e-6 * abs(before):
            listed = optimizer.variables
            listed = listed() if callable(listed) else listed
            held = variables.numbers_of(listed)
            note("rate", before=before, after=after, variables=held, at=where())
    RATES_BEFORE.clear()
