"""Which report or page tells of the difference that a program shows."""

from ..differences import Result
from .program import Program

# The beginnings of choices, or of how the program differs, and a report in `upstream` or a page with the sentence. The first row
# of which a program has all is told.
KNOWN: dict[tuple[str, ...], str] = {
    ("interrupted: saved as .h5",): "h5_optimizer_without_variables",
    ("interrupted: stopped in an epoch",): "backup_repeats_batches",
    ("interrupted: stopped between epochs",): "initial_epoch_stays",
    ("strategy: keras.distribution",): "keras_distribution_tensorflow",
    ("than with dense gradients", "clipnorm="): "clipping_of_duplicate_ids",
    ("than with dense gradients", "global_clipnorm="): "clipping_of_duplicate_ids",
    ("than with dense gradients",): "embedding_duplicate_ids",
    ("than traced", "optimizer: ScheduleFreeAdamW"): "schedule_free_adamw_forgets_weights",
    ("steps", "steps_per_execution="): "steps_per_execution_overruns",
    ("steps", "data: a generator of one epoch"): "iterations_of_a_generator",
    ("inputs: long sequences", "sample_weight="): "sample_weight_over_time",
    ("method: compute_loss in the scope",): "loss_in_scope",
    ("method: predict_on_batch",): "on_batch_methods_not_distributed",
    ("policy: float8",): "float8_history_of_first_replica",
    ("policy: mixed_float16", "values: an infinite row"): "loss_scale_of_first_replica",
    (
        "model: TwoOutputs",
    ): "https://github.com/keras-team/keras/blob/v3.15.1/keras/src/trainers/compile_utils.py#L838",
    ("Counts('sum')",): "assign_add_of_a_sum",
    ("Counts('mean')",): "https://keras.io/api/layers/base_layer/",
    ("clipnorm=",): "clipping_before_all_reduce",
    ("clipvalue=",): "clipping_before_all_reduce",
    ("global_clipnorm=",): "clipping_before_all_reduce",
    ("gradient_accumulation_steps=",): "https://github.com/keras-team/keras/issues/20582",
    ("use_ema=True, ema_overwrite_frequency=",): "ema_overwrite_frequency",
    ("optimizer: ScheduleFreeAdamW",): "schedule_free_adamw_forgets_weights",
    ("keras.layers.Dropout(",): "dropout_same_mask",
    ("keras.layers.SpatialDropout",): "dropout_same_mask",
    ("keras.layers.GaussianNoise(",): "dropout_same_mask",
    ("keras.layers.RandomFlip(",): "dropout_same_mask",
    ("keras.layers.SimpleRNN(3, dropout=",): "dropout_same_mask",
    ("keras.layers.BatchNormalization()",): "moving_statistics_of_first_replica",
    ("keras.layers.BatchNormalization(synchronized",): "batch_normalization_empty_part",
    ("keras.layers.DepthwiseConv2D(",): "https://github.com/tensorflow/tensorflow/issues/9949",
    ("keras.layers.SeparableConv2D(",): "https://github.com/tensorflow/tensorflow/issues/9949",
    ("keras.layers.Conv2D(",): "conv2d_of_an_empty_batch",
    ("keras.layers.MaxPooling2D(",): "https://github.com/tensorflow/tensorflow/issues/126128",
    ("AddsLoss()",): "https://keras.io/api/layers/base_layer/#add_loss-method",
    ("keras.layers.Masking()",): "masked_loss_mean_of_means",
    ("loss: keras.losses.SparseCategoricalCrossentropy(ignore_class",): "masked_loss_mean_of_means",
    ("loss: keras.losses.Dice()",): "scalar_loss_in_fit",
    ("loss: lambda y, found: tf.reduce_mean(tf.square(y - found))",): "scalar_loss_in_fit",
    ("loss: 'mse' of one number",): "scalar_loss_in_fit",
    ("loss: keras.losses.MeanSquaredError(reduction='sum')",): "fit_counts_empty_parts",
    ("loss: keras.losses.MeanSquaredError(reduction='mean_with",): "masked_loss_mean_of_means",
    ("model: OwnStep",): "loss_of_own_train_step",
    ("model: OwnLoss",): "compute_loss_overridden",
    ("callbacks=[Logs()]",): "logs_of_each_batch",
    ("data: a generator of slices",): "distributed_generator_overwrites_arrays",
    ("data: a generator",): "generator_loses_batches",
    ("validation_data=",): "generator_loses_batches",
    ("method: train_on_batch",): "on_batch_methods_not_distributed",
    ("method: test_on_batch",): "on_batch_methods_not_distributed",
    ("jit_compile=True",): "https://github.com/keras-team/keras/issues/19005",
    ("steps_per_execution=2",): "https://github.com/keras-team/keras/issues/18283",
    ("auto_scale_loss=False",): "https://keras.io/api/models/model_training_apis/#compile-method",
    ("rows: 13",): "generator_loses_batches",
    ("rows: 29",): "fit_counts_empty_parts",
    ("rows: 17",): "fit_counts_empty_parts",
}


def known(program: Program, result: Result) -> str:
    """Returns what tells of the choices of a program that differs in this way, or ""."""
    signs = [*program.choices, result.says]
    return next(
        (
            reference
            for beginnings, reference in KNOWN.items()
            if all(any(sign.startswith(each) for sign in signs) for each in beginnings)
        ),
        "",
    )
