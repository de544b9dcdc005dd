"""The tier of a minute: a cell for each error that is known, in the order of the kinds, and some that are the same.

What needs processes of a cluster is run at night.
"""

QUICK = frozenset(
    """
    optimizer/Adam/plain/fit/even/x2/keras3
    optimizer/SGD/clipnorm/fit/even/x2/keras3
    optimizer/Adam/accumulation/fit/even/x2/keras3
    optimizer/Adam/ema_overwrite_frequency=2/fit/even/x2/keras3
    optimizer/Adam/loss_scale overflow/fit/even/x2/keras3
    optimizer/Adam/repeated ids/fit/even/x2/keras3
    optimizer/ScheduleFreeAdamW/plain/fit/even/x2/keras3
    loss/MeanSquaredError/plain/fit/even/x2/keras3
    loss/MeanSquaredError/plain/fit/uneven/x2/keras3
    loss/function/returns one number/fit/even/x2/keras3
    loss/MeanSquaredError/mask/fit/uneven/x2/keras3
    loss/MeanSquaredError/reduction sum/fit/uneven/x2/keras3
    loss/MeanSquaredError/sample_weight of rows/fit/even/x2/keras3
    metric/AUC/plain/evaluate/uneven/x2/keras3
    layer/BatchNormalization/plain/fit/even/x2/keras3
    layer/BatchNormalization/plain/fit/empty/x2/keras3
    layer/Dropout/randomness/loop/even/x2/keras3
    layer/Layer/add_loss of a sum/fit/even/x2/keras3
    callback/BackupAndRestore/stopped in an epoch/fit/even/x2/keras3
    saver/save .h5/Adam same/fit/even/x2/keras3
    training/fit/one epoch of a generator/fit/even/x2/keras3
    training/fit/strings/fit/even/x2/keras3
    training/fit/outputs of rank 1/fit/even/x2/keras3
    training/fit/train_step of the guide/fit/even/x2/keras3
    training/fit/compute_loss/fit/even/x2/keras3
    training/fit/metrics after each batch/fit/uneven/x2/keras3
    training/fit/jit_compile/fit/even/x2/keras3
    training/evaluate/two outputs/evaluate/uneven/x2/keras3
    training/predict_on_batch/plain/on_batch/even/x2/keras3
    training/keras.distribution/DataParallel/fit/even/x2/keras3
    check/steps/steps_per_execution/fit/even/x2/keras3
    check/steps/one epoch of a generator/fit/even/x1/keras3
    check/loss/compute_loss in the scope/loop/even/x2/keras3
    check/restart/fit again after a backup/fit/even/x2/keras3
    check/order/fit of arrays after a seed/fit/even/x1/keras3
    check/arrays/a generator of slices/fit/even/x2/keras3
    check/paper/ScheduleFreeAdamW/loop/even/x1/keras3
    check/history/float8/fit/even/x2/keras3
    check/rows/counted with aggregation sum/fit/even/x2/keras3
    check/repeated ids/clipnorm/fit/even/x1/keras3
    check/shape/Conv2D with oneDNN/loop/empty/x2/keras3
    check/deletion/an iterator/loop/even/x1/keras3
    """.strip().split("\n    ")
)
