"""Errors and descriptions as people paste them: of modes, and of what looks near and is not a mode."""

# One message a line, as TensorFlow and Keras of that time word it; none is one of the recorded ones.
ERRORS = [
    ("fm01", "NotImplementedError: numpy() is only available when eager execution is enabled. __inference_train_step"),
    ("fm02", "RuntimeError: Method requires being in cross-tower context, use get_tower_context().merge_call()"),
    ("fm03", "RuntimeError: Mixing different DistributionStrategy objects: <a> is not <b>"),
    ("fm03", "ValueError: Trying to create optimizer slot variable under the scope for tf.distribute.Strategy (<x>)"),
    ("fm04", "ValueError: The filepath provided must end in `.keras` (Keras model format). Received: filepath=w.h5"),
    ("fm05", "AssertionError: Tried to export a function which references untracked object Tensor(\"1:0\")"),
    ("fm06", "InvalidArgumentError: Assign requires shapes of both tensors to match. lhs shape= [9] rhs shape= [8]"),
    ("fm06", "NotFoundError: Key conv1/weights not found in checkpoint"),
    ("fm06", "ValueError: You are trying to load a weight file containing 25 layers into a model with 31 layers."),
    ("fm06", "ValueError: Shape of variable w:0 ((4,)) doesn't match with shape of tensor w ([5]) from checkpoint reader."),
    ("fm07", "NotImplementedError: Cannot convert a symbolic Tensor (loss/mul:0) to a numpy array."),
    ("fm67", "OperatorNotAllowedInGraphError: using a `tf.Tensor` as a Python `bool` is not allowed in Graph execution."),
    ("fm08", "DataLossError: Unable to open table file m.ckpt.data-00000-of-00001: Data loss: not an sstable"),
    ("fm08", "ValueError: Can't load save_path when it is None."),
    ("fm09", "NotFoundError: Key dense/kernel/Adam_1 not found in checkpoint"),
    ("fm10", "ValueError: Unknown variable: <KerasVariable shape=(2, 2), dtype=float32, path=d/kernel>."),
    ("fm11", "ValueError: You called `set_weights(weights)` on layer \"d\" with a weight list of length 2, "
     "but the layer was expecting 0 weights."),
    ("fm12", "ValueError: tf.function-decorated function tried to create variables on non-first call."),
    ("fm13", "    optimizer.apply_gradients(zip(grads, weights))\nValueError: None values not supported."),
    ("fm13", "WARNING:tensorflow:Gradients do not exist for variables ['critic/kernel:0'] when minimizing the loss."),
    ("fm15", "ValueError: You must specify an aggregation method to update a MirroredVariable in Tower Context."),
    ("fm17", "RuntimeError: Cannot find any TPU cores in the system (master address grpc://10.0.0.2:8470)."),
    ("fm17", "InvalidArgumentError: NodeDef expected inputs 'string' do not match 0 inputs specified; Op<name=_Send; "
     "signature=tensor:T -> ; attr=T:type; attr=tensor_name:string; attr=send_device:string"),
    ("fm18", "ValueError: TPUConfig.num_shards is not set correctly. According to TPU system metadata"),
    ("fm19", "AssertionError: batch_size must be divisible by the number of TPU cores in use (33 vs 8)"),
    ("fm20", "RuntimeError: tf.distribute.Strategy.gather method requires cross-replica context, use all_gather()"),
    ("fm21", "AttributeError: 'DistributedDataset' object has no attribute 'map'"),
    ("fm39", "TypeError: unsupported operand type(s) for +: 'PerReplica' and 'int'"),
    ("fm39", "TypeError: Inputs to a layer should be tensors. Got 'PerReplica:{\n  0: tf.Tensor(\n[[1. 1.]], shape=(1, 2), "
     "dtype=float32)\n}' (of type <class 'tensorflow.python.distribute.values.PerReplica'>) as input for layer 'dense'."),
    ("fm26", "ValueError: You are trying to load a weight file containing 1 layers into a model with 19 layers."),
    ("fm27", "OSError: SavedModel file does not exist at: ckpt/{saved_model.pbtxt|saved_model.pb}"),
    ("fm27", "NotImplementedError: Saving the model to HDF5 format requires the model to be a Functional model or a Sequential "
     "model. It does not work for subclassed models, because such models are defined via the body of a Python method"),
    ("fm28", "    w = np.array(model.get_weights())\n"
     "ValueError: could not broadcast input array from shape (3,3) into shape (3)"),
    ("fm29", "WARNING:tensorflow:Error in loading the saved optimizer state. As a result, your model is starting "
     "with a freshly initialized optimizer."),
    ("fm30", "ValueError: Unknown loss function:focal_loss"),
    ("fm31", "RuntimeError: `add_update` was called in a cross-replica context. This is not expected."),
    ("fm32", "InvalidArgumentError: You must feed a value for placeholder tensor 'cond/else/_1/cond/Placeholder' with dtype"),
    ("fm33", "TypeError: An op outside of the function building code is being passed\na \"Graph\" tensor."),
    ("fm34", "ValueError: Variable <tf.Variable 'w:0'> has `None` for gradient. Please make sure that all of your ops "
     "have a gradient defined"),
    ("fm36", "InternalError: Device GPU:1 is joining a group with size 4, but that group has size 2 (group_key=1)"),
    ("fm40", "RuntimeError: If you are subclassing a `tf.keras.Model`, please avoid decorating overridden methods "
     "`test_step` and `train_step` in `tf.function`."),
    ("fm37", "ValueError: Please use `tf.keras.losses.Reduction.SUM` or `tf.keras.losses.Reduction.NONE` for loss "
     "reduction when losses are used with `tf.distribute.Strategy` outside of the built-in training loops."),
    ("fm45", "ValueError: Unrecognized keyword arguments passed to GRU: {'batch_input_shape': [2, 5], 'time_major': False}"),
    ("fm56", "ValueError: Exception encountered when calling Dropout.call(). "
             "You must specify an aggregation method to update a AggregatingVariable in Replica Context."),
    ("fm56", "  File \"keras/src/random/seed_generator.py\", line 75, in __init__\n"
             "ValueError: creating distributed tf.Variable with aggregation=MEAN and a non-floating dtype is not supported, "
             "please use a different aggregation or dtype"),
]  # fmt: skip
OF_NO_MODE = [
    "ResourceExhaustedError: OOM when allocating tensor with shape[64,112,112,64] and type float",
    "InvalidArgumentError: assertion failed: [Trying to access a placeholder that is not supposed to be executed.]",
    "----> 1 model = load_model(path)\nTypeError: __init__() got an unexpected keyword argument 'ragged'",
    "UnknownError: Failed to get convolution algorithm. This is probably because cuDNN failed to initialize",
    "ValueError: Input 0 of layer \"dense\" is incompatible with the layer: expected axis -1 of input shape to have value 4",
    "ValueError: Shapes (None, 1) and (None, 10) are incompatible",
    "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: \"fc.weight\".",
    "jax._src.errors.TracerArrayConversionError: The numpy.ndarray conversion method __array__() was called on traced array",
    "OSError: Unable to open file (file signature not found)",
    "OSError: Unable to synchronously open file (truncated file: eof = 96, sblock->base_addr = 0, stored_eof = 2048)",
    "AttributeError: 'str' object has no attribute 'decode'",
    "KeyError: 'loss'",
    "ZeroDivisionError: division by zero",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
    "ModuleNotFoundError: No module named 'keras.layers.normalization'",
    "InvalidArgumentError: indices[0,3] = 5000 is not in [0, 5000)",
    "ValueError: setting an array element with a sequence.",
    "NotImplementedError: Cannot convert a symbolic Tensor (lstm/strided_slice:0) to a numpy array.",
    "ValueError: not enough values to unpack (expected 2, got 0)\n  for key, value in line.split(','):",
    "TypeError: __init__() got an unexpected keyword argument 'lr'",
    "RuntimeError: You must compile your model before training/testing. Use `model.compile(optimizer, loss)`.",
    "Invalid argument: You must feed a value for placeholder tensor 'x' with dtype float",
    "ValueError: train batch size 6 must be divisible by number of replicas 8",
    "InvalidArgumentError: Batch size: 32 is not divisible by num_workers: 3 [Op:ExperimentalRebatchDataset]",
    "With TF_CONFIG on both machines, InternalError: Collective Op has group_size 8 but that group has size 4",
    "AttributeError: The layer sequential_2 has never been called and thus has no defined output.",
    "AttributeError: 'LossScaleOptimizer' object has no attribute 'get_unscaled_gradients'",
    "DeadlineExceededError: Barrier timed out. Id: WaitForAllTasks::8. This usually happens because a task",
    "TypeError: Cannot convert a symbolic Keras input/output to a numpy array. The loss uses an Input.",
    "",
    "Hello, my code does not work, please help.",
]  # fmt: skip
DESCRIBED = [
    ("fm37", "The loss is twice as large with two GPUs as with one."),
    ("fm38", "evaluate differs after loading, only with BatchNormalization and MirroredStrategy"),
    (
        "fm29",
        "the loss jumps when I continue training the loaded model, as if the optimizer began anew",
    ),
    ("fm14", "I cloned a layer, and the two copies have different weights after training"),
    ("fm25", "after load_model only one of our four GPUs is busy"),
    ("fm35", "the restored model gives garbage in a new session, and restore raised nothing"),
    (
        "fm49",
        "The loss I wrote returns one value for the whole batch, and with two cards model.fit moves everything twice as far.",
    ),
    ("fm50", "Limiting the norm of what is applied behaves otherwise when a second card is added."),
    (
        "fm51",
        "In fp16 half of the cards see an infinite value, and the parameters are destroyed although the scaler should skip.",
    ),
    (
        "fm52",
        "One card's share of the final minibatch has zero rows, afterwards every parameter is not finite.",
    ),
    ("fm53", "With four cards each of them computes all 64 rows, so nothing becomes quicker."),
    ("fm55", "My in-batch contrastive objective changes its value with the number of cards."),
    (
        "fm57",
        "I called set_distribution of Keras with two accelerators on the TensorFlow backend, and just one is busy.",
    ),
    (
        "fm59",
        "One machine runs out of its files sooner, leaves the loop, and the other never comes back from its step.",
    ),
    (
        "fm59",
        "One pod stops at its time limit while the remaining pods sit in train_step until they are killed.",
    ),
]
# What is left of a traceback where the message was not pasted.
CUT = [
    ("fm30", '    load_model("m.h5")\n  File "keras/utils/generic_utils.py", line 147, in deserialize_keras_object\n'),
    ("fm34", '  File "tensorflow/python/keras/optimizer_v2/utils.py", line 73, in filter_empty_gradients\n    raise Val'),
    ("fm12", "ValueError: in user code:\n\n    def_function.py:502 invalid_creator_scope\n        raise ValueError("),
    ("fm13", '  clip(grads)\n  File "clip_ops.py", line 53, in clip_by_value\n\n  File "ops.py", line 6, in convert_to_tensor'),
    ("fm28", '    bp.write_weights(path)\n  File "bp.py", line 475, in write_weights\n    np.savez(path, parts=parts)\n'),
    ("fm31", 'RuntimeError: in user code:\n  File "distribute_lib.py", line 9, in require_replica_context'),
    ("fm12", 'ValueError: in user code:\n  File "mine.py", line 6, in weighted  *\n    w = K.variable(rates)'),
    ("fm13", '  File "towers.py", line 40, in average_gradients\n    wide = tf.expand_dims(each, 0)'),
    ("fm15", '  File "keras/src/optimizers/loss_scale_optimizer.py", line 183, in apply\n    ops.cond(finite, on two replicas'),
    ("fm40", '  File "optimizer_v2/utils.py", line 39, in all_reduce_sum_gradients\n    context.merge_call('),
    ("fm42", 'OutOfRangeError  Traceback\nmine.py in fit(data)\n----> 1 model.fit(data, steps_per_epoch=9)'),
    ("fm30", '  File "saving_api.py", line 1, in load_model\n  File "saving_lib.py", line 4, in f\n  deserialize_keras_object('),
    ("fm17", '  File "tpu_context.py", line 442, in is_running_on_cpu\n    self._validate_tpu_configuration()'),
    ("fm06", "Caused by op 'save/Assign_29', defined at:\n  File \"saver.py\", line 428, in _AddRestoreOps"),
    ("fm15", '  File "mirrored_run.py", line 387, in run\n  File "td3.py", line 316, in _train\n    tf.cond('),
    ("fm30", '    m = load_model(path, custom_objects=mine)\n  File "keras/models.py", line 388, in load_model'),
    ("fm30", '    load_model(path)\n  File "models.py", line 274, in load_model\n    sample_weight_mode=sample_weight_mode)'),
]  # fmt: skip
FIT = """Traceback (most recent call last):
  File "train.py", line 40, in <module>
    model.fit(data, epochs=3)
  File "/usr/lib/python3/site-packages/keras/engine/training.py", line 1040, in step_function  **
    outputs = model.distribute_strategy.run(run_step, args=(data,))
  File "/usr/lib/python3/site-packages/tensorflow/python/distribute/distribute_lib.py", line 2585, in merge_call
    return self._merge_call(merge_fn, args, kwargs)
  File "/usr/lib/python3/site-packages/keras/optimizers/optimizer_v2/optimizer_v2.py", line 640, in apply_gradients
    return tf.__internal__.distribute.interim.maybe_merge_call(
"""
