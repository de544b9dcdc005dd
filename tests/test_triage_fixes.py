"""Messages for which the fix of their mode does not help: the answer has a fix of the message's own, each tried by a run."""

import re
from collections import Counter

import pytest
from strategy_clinic.base import files
from strategy_clinic.triage import answer_text, classify, wordings

FIXES = [
    ("fm21", "AttributeError: 'DistributedDataset' object has no attribute 'map'", "before it is distributed"),
    ("fm21", "AttributeError: 'DistributedDataset' object has no attribute 'take'", "before it is distributed"),
    ("fm21", "TypeError: object of type 'DistributedDataset' has no len()", "len(dataset)"),
    ("fm21", "ValueError: The `global_batch_size` 7 is not divisible by `num_replicas_in_sync` 2", "divides"),
    ("fm21", "TypeError: dataset_fn() takes 0 positional arguments but 1 was given", "def dataset_fn(context)"),
    ("fm02", "ValueError: next(iterator) should be called from outside of replica_fn. e.g. strategy.run(", "model(batch)"),
    ("fm71", "InvalidArgumentError: Inputs to operation AddN of type AddN must have the same size and shape.  "
     "Input 0: [11,3] != input 2: [10,3] [Op:AddN] name:", "validation_data"),
    ("fm19", "ValueError: Dimension 0 in both shapes must be equal, but are 7 and 6. Shapes are [7] and [6].\n"
     "\tFrom merging shape 0 with other shapes. for '{{node AddN}} = AddN[N=2]", "drop_remainder"),
    ("fm04", "ValueError: The `save_format` argument is deprecated in Keras 3. Please remove this argument and pass a file path "
     "with either `.keras` or `.h5` extension.Received: save_format=tf", "model.export(folder)"),
    ("fm04", "TypeError: Model.save_weights() got an unexpected keyword argument 'save_format'", ".weights.h5"),
    ("fm04", "ValueError: Invalid filepath extension for saving. Please add either a `.keras` extension", ".keras"),
    ("fm06", "ValueError: Layer 'dense_12' expected 2 variables, but received 0 variables during loading.", "older format"),
    ("fm06", "ValueError: Layer count mismatch when loading weights from file. Model expected 1 layers, found 0 saved layers.",
     "ends in `.weights.h5`"),
    ("fm06", "AssertionError: Unresolved object in checkpoint (root).model.hidden._kernel: attributes {", "fm35"),
    ("fm67", "OperatorNotAllowedInGraphError: Using a symbolic `tf.Tensor` as a Python `bool` is not allowed.", "tf.cond"),
    ("fm08", "OpError: file is too short to be an sstable", "the checkpoint before it"),
    ("fm11", "ValueError: Layer 'dense' was never built and thus it doesn't have any variables.", "in `build`"),
    ("fm15", "counter.assign_add(1.0)\nValueError: A non-DistributedValues value 1.0 cannot be reduced with the given reduce op "
     "ReduceOp.SUM.", "ONLY_FIRST_REPLICA"),
    ("fm38", "ValueError: Could not convert from `tf.VariableAggregation` VariableAggregationV2.NONE to`tf.distribute.ReduceOp` "
     "type", "aggregation"),
    ("fm22", "AttributeError: 'SymbolicTensor' object has no attribute 'assign'", "without passing it"),
    ("fm23", "ValueError: Trying to run metric.update_state in replica context when the metric was not "
     "created in TPUStrategy scope.", "scope"),
    ("fm13", "UserWarning: Gradients do not exist for variables ['critic/kernel'] when minimizing the loss. If using "
     "`model.compile()`, did you forget to provide a `loss` argument?", "fm34"),
    ("fm17", "InvalidArgumentError: NodeDef expected inputs 'string' do not match 0 inputs specified; Op<name=_Send; signature=",
     "the release of TensorFlow that the TPU has"),
    ("fm27", "NotImplementedError: Saving the model to HDF5 format requires the model to be a Functional model or a Sequential "
     "model.", "`.keras`"),
    ("fm27", "AttributeError: '_UserObject' object has no attribute 'predict'", "serve(batch)"),
    ("fm27", "TypeError: '_UserObject' object is not callable", "serve(batch)"),
    ("fm27", "TypeError: stat: path should be string, bytes, os.PathLike or integer, not NoneType, in load_model(path)",
     "glob.glob("),
    ("fm31", "AttributeError: 'NoneType' object has no attribute 'all_reduce'", "fm55"),
    ("fm34", "ValueError: `tape` is required when a `Tensor` loss is passed. Received: loss=1.0, tape=None.", "tape=tape"),
    ("fm15", "ValueError: You must specify an aggregation method to update a MirroredVariable in Replica Context.",
     "ONLY_FIRST_REPLICA"),
    ("fm19", "InternalError: Collective ops is aborted by: Shape mismatch in the collective instance 103.", "fm59"),
    ("fm55", "  File \"keras/src/trainers/trainer.py\", line 1117, in _symbolic_build\n    backend.compute_output_spec(\n"
     "AttributeError: 'NoneType' object has no attribute 'all_reduce'", "outside of the replicas"),
    ("fm45", "TypeError: Unrecognized keyword arguments: ['batch_shape']", "is of Keras 3"),
    ("fm45", "TypeError: Error when deserializing class 'InputLayer' using config={'batch_shape': [None, 2], 'sparse': False, "
     "'optional': False}.", "is of Keras 3"),
    ("fm45", "TypeError: Error when deserializing class 'InputLayer' using config={'batch_input_shape': [None, 2]}.",
     "read it with Keras 2"),
    ("fm48", "W tensorflow/core/grappler/optimizers/data/auto_shard.cc:766] AUTO sharding policy will apply DATA sharding policy "
     "as it failed to apply FILE sharding policy because of the following reason: Did not find a shardable", "on one machine"),
    ("fm09", "ValueError: Optimizer weight shape (256, 32) not compatible with provided weight shape (4,).", "compile=False"),
    ("fm74", "ValueError: Could not find matching concrete function to call loaded from the SavedModel. Got:\n  Positional "
     "arguments (1 total):\n    * <tf.Tensor 'x:0' shape=(4, 3) dtype=float32>", "input_signature"),
    ("fm78", "model.fit(dataset)\nValueError: Attempt to convert a value (PerReplica:{ 0: <tf.Tensor>}) with an unsupported type",
     "strategy.run"),
    ("fm78", "ValueError: To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset.",
     "ClusterCoordinator"),
    ("fm02", 'self.main_result = self.main_fn(*self.main_args)\n  File "keras/src/trainer.py", line 622, in train_on_batch\n'
     "RuntimeError: Method requires being in cross-replica context, use get_replica_context()", "without `strategy.run`"),
    ("fm09", "in assert_consumed\nAssertionError: Unresolved object in checkpoint (root).optimizer._variables.2: attributes {",
     "before `restore`"),
    ("fm22", "TypeError: Binding inputs to tf.function failed due to `'PerReplica' object has no attribute 'dtype'`. Received "
     "args: (PerReplica:{", "remove `input_signature`"),
    ("fm11", "RuntimeError: Unable to automatically build the model. Please build it yourself before calling fit.\nException "
     "encountered:\n'Model VAE does not have a `call()` method implemented.'", "add `call`"),
    ("fm31", "RuntimeError: Unable to automatically build the model.\n'Exception encountered when calling Mean.call().\n\n"
     "'NoneType' object has no attribute 'all_reduce'", "builds a model outside"),
    ("fm32", "InvalidArgumentError: You must feed a value for placeholder tensor 'cond/Placeholder_1' with dtype int32",
     "call the model on a batch"),
    ("fm39", "ValueError: Only input tensors may be passed as positional arguments. The following argument value should be "
     "passed as a keyword argument: PerReplica:{", "strategy.run(step"),
]  # fmt: skip
OF_NO_MODE = [
    ("ModuleNotFoundError: No module named 'foo'", "a module that is not installed"),
    ("ModuleNotFoundError: No module named 'matplotlib'", "a module that is not installed"),
    ("ModuleNotFoundError: No module named 'keras.layers.normalization'", "Keras of another version"),
    ("ModuleNotFoundError: No module named 'tensorflow.contrib'", "Keras of another version"),
    ("RuntimeError: Virtual devices cannot be modified after being initialized", "before anything else of TensorFlow"),
    ("AttributeError: 'SGD' object has no attribute 'minimize'", "apply_gradients"),
    ("AttributeError: 'SGD' object has no attribute 'get_scaled_loss'", "mixed precision"),
    ("AttributeError: The layer sequential_2 has never been called and thus has no defined output.", "without symbolic inputs"),
    ("ValueError: Unrecognized keyword arguments passed to GRU: {'batch_input_shape': (2, 5)}", "keras.Input(batch_shape"),
    ("RuntimeError: Detected a call to `Model.predict` inside a `tf.function`.", "model(batch)"),
    ("AttributeError: module 'tensorflow.python.distribute.input_lib' has no attribute 'DistributedDatasetInterface'",
     "import `tensorflow.keras`"),
    ("TypeError: Could not build a TypeSpec for <KerasTensor: shape=(None, 4) dtype=float32 (created by layer 'input_1')> with "
     "type KerasTensor", "a layer of your own"),
    ("TypeError: You are passing KerasTensor(type_spec=TensorSpec(shape=(None, 4), dtype=tf.float32, name='input_1')), an "
     "intermediate Keras symbolic input/output, to a TF API that does not allow custom dispatchers", "a layer of your own"),
    ("InvalidArgumentError: assertion failed: [Trying to access a placeholder that is not supposed to be executed. This "
     "means you are executing a graph generated from the cross-replica context in an in-replica context.]", "no concrete func"),
    ("    np.savez(path, mats=matrices)\nValueError: setting an array element with a sequence. The requested array has an "
     "inhomogeneous shape after 1 dimensions.", "np.savez(path, *arrays)"),
    ("ValueError: A non-DistributedValues value 8 cannot be reduced with the given reduce op ReduceOp.SUM.", "strategy.reduce"),
]  # fmt: skip
SAYS_IT = re.compile(": |, ")  # what a kind says after its name


@pytest.mark.parametrize("mode, message, words", FIXES)
def test_the_fix_is_one_for_this_message(mode, message, words):
    answer = classify.triage(message)
    said = answer_text.lines_of(answer)
    assert answer.mode == mode and words in said[2] and said[2].startswith("  fix: ")
    assert "fix" not in answer.as_dict()["candidates"][0]


@pytest.mark.parametrize("message, words", OF_NO_MODE)
def test_what_to_do_is_said_of_what_is_none(message, words):
    first, *rest = answer_text.lines_of(classify.triage(message))
    assert first.startswith("none of the modes") and words in "\n".join(rest)


def test_each_kind_of_what_is_none_says_what_to_do():
    """Where more than one message is of a kind, there is advice, or the kind says it itself."""
    kinds = Counter(
        entry.kind for entry in wordings.wordings() if not entry.mode and not entry.error
    )
    said = {entry.kind for entry in wordings.wordings() if entry.fix} | {None}
    silent = [
        kind for kind, n in kinds.items() if n > 1 and kind not in said and not SAYS_IT.search(kind)
    ]
    advice = files.toml(wordings.words_files()[None].read_text())["advice"]
    assert silent == [] and set(advice) <= set(kinds)
    out_of_memory = answer_text.lines_of(classify.triage("OOM when allocating tensor"))
    assert out_of_memory[2] == f"  next: {advice['out of memory']}"


def test_only_modules_of_keras_and_tensorflow_are_of_another_version():
    other = answer_text.lines_of(classify.triage("ModuleNotFoundError: No module named 'kerasify'"))
    assert not any("Keras of another version" in line for line in other)
