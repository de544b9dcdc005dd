"""Two patches of TensorFlow with which tests of whole notebooks take less time; nobody else's TensorFlow is patched.

On Python 3.13 TensorFlow waits in most steps: a page that takes 5 seconds with these patches takes 8 to 40 without.
"""

import functools


def shorten():
    """Patches TensorFlow in this process; may be called again."""
    import tensorflow as tf

    wrap(tf.compat.v1.train.Coordinator, "join", join_threads_first)
    wrap(tf.data.Dataset, "_apply_debug_options", without_tuning)


def wrap(owner: type, name: str, wrapper):
    method = getattr(owner, name)
    if not hasattr(method, "__wrapped__"):
        setattr(owner, name, functools.wraps(method)(wrapper(method)))


def join_threads_first(join):
    """A run of replicas ends with the last of them, and not up to a second later.

    TensorFlow looks once a second whether their threads have ended. On Python 3.13 they seldom have at its first look,
    so that most runs outside of a tf.function take a second longer than their work.
    """

    def joined(coordinator, threads=(), *rest, **named):
        for thread in threads or ():
            thread.join(1)  # TensorFlow waits for what has not ended then
        return join(coordinator, threads, *rest, **named)

    return joined


def without_tuning(apply_options):
    """An iterator that is deleted has no tuning thread to wait for.

    That thread may miss that it is to end, and then sleeps for as long as tuning has run already. The options of a dataset do
    not reach the iterators that send its batches to each device, so that every dataset is given the option here.
    """

    def untuned(dataset):
        import tensorflow as tf

        applied = apply_options(dataset)
        if applied.options().autotune.enabled is not None:
            return applied
        options = tf.data.Options()
        options.autotune.enabled = False
        return applied.with_options(options)

    return untuned
