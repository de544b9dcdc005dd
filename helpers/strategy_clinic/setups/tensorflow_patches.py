"""Two places where TensorFlow waits for what is over already; our pages and their workers do not.

Nothing else changes by that, and programs that are examined run in TensorFlow as it is.
"""

import functools


def cut_short():
    """May be called again: what is wrapped stays as it is."""
    import tensorflow as tf

    wrap_method(tf.compat.v1.train.Coordinator, "join", threads_first)
    wrap_method(tf.data.Dataset, "_apply_debug_options", untuned)


def wrap_method(owner: type, name: str, instead):
    method = getattr(owner, name)
    if not hasattr(method, "__wrapped__"):
        setattr(owner, name, functools.wraps(method)(instead(method)))


def threads_first(join):
    """A run of replicas ends with the last of them, and not up to a second later.

    TensorFlow looks once a second whether their threads are over. On Python 3.13 they seldom are at its first look,
    so that most runs outside of a tf.function take a second longer than their work.
    """

    def waited(coordinator, threads=(), *rest, **named):
        for thread in threads or ():
            thread.join(1)  # what still goes on then is waited for by TensorFlow
        return join(coordinator, threads, *rest, **named)

    return waited


def untuned(options_applied):
    """An iterator that is let go has no tuning thread to wait for.

    That thread may miss that it is to end, and then sleeps on, for as long as tuning has run already. Options of a dataset do
    not reach the iterators that send its batches to each device, so all of them are told here.
    """

    def quiet(dataset):
        import tensorflow as tf

        applied = options_applied(dataset)
        if applied.options().autotune.enabled is not None:
            return applied
        options = tf.data.Options()
        options.autotune.enabled = False
        return applied.with_options(options)

    return quiet
