"""A plugin of pytest: iterators of tf.data are not autotuned, since their deletion may wait up to a minute then."""

from strategy_clinic.base import dataset_iterators

dataset_iterators.turn_off_autotuning(setattr)
