"""Replaces the functions and the operations of TensorFlow that take paths by those that take their places in a view."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from ..base import tf_internals
from .redirection import Argument, Redirected, Redirection, Use, redirected


class PathInput(NamedTuple):
    """An input of an operation that holds paths."""

    position: int
    name: str
    use: Use
    at_run_time: bool = True  # a tensor whose value is known only then is replaced, too


# The savers of checkpoints are given the place itself: a graph that is saved with a model has no Python to ask.
OPERATIONS: dict[str, tuple[PathInput, ...]] = {
    "SaveV2": (PathInput(0, "prefix", Use.MAKE, False),),
    "RestoreV2": (PathInput(0, "prefix", Use.READ_PREFIX, False),),
    "MergeV2Checkpoints": (
        PathInput(0, "checkpoint_prefixes", Use.MAKE, False),
        PathInput(1, "destination_prefix", Use.MAKE, False),
    ),
    "ReadFile": (PathInput(0, "filename", Use.READ),),
    "WriteFile": (PathInput(0, "filename", Use.OVERWRITE),),
    "TextLineDataset": (PathInput(0, "filenames", Use.READ),),
    "TFRecordDataset": (PathInput(0, "filenames", Use.READ),),
    "TFRecordDatasetV2": (PathInput(0, "filenames", Use.READ),),
    "FixedLengthRecordDataset": (PathInput(0, "filenames", Use.READ),),
    "FixedLengthRecordDatasetV2": (PathInput(0, "filenames", Use.READ),),
    "CSVDataset": (PathInput(0, "filenames", Use.READ),),
    "CSVDatasetV2": (PathInput(0, "filenames", Use.READ),),
    "CacheDataset": (PathInput(1, "filename", Use.WRITE_PREFIX),),
    "CacheDatasetV2": (PathInput(1, "filename", Use.WRITE_PREFIX),),
    "SaveDataset": (PathInput(1, "path", Use.WRITE_TREE),),
    "SaveDatasetV2": (PathInput(1, "path", Use.WRITE_TREE),),
    "LoadDataset": (PathInput(0, "path", Use.WRITE_TREE),),
    "SnapshotDataset": (PathInput(1, "path", Use.WRITE_TREE),),
    "SnapshotDatasetV2": (PathInput(1, "path", Use.WRITE_TREE),),
    "InitializeTableFromTextFile": (PathInput(1, "filename", Use.READ),),
    "InitializeTableFromTextFileV2": (PathInput(1, "filename", Use.READ),),
    "CreateSummaryFileWriter": (PathInput(1, "logdir", Use.MAKE),),
}
# Functions, and classes that are called, by the name of their module in `tf_internals`.
FUNCTIONS: dict[str, dict[str, tuple[Argument, ...]]] = {
    "pywrap_file_io": {
        **dict.fromkeys(
            ("FileExists", "IsDirectory", "HasAtomicMove", "Stat", "BufferedInputStream"),
            (Argument(0, "filename", Use.READ),),
        ),
        "DeleteFile": (Argument(0, "filename", Use.REMOVE),),
        "DeleteRecursively": (Argument(0, "dirname", Use.REMOVE_TREE),),
        "CreateDir": (Argument(0, "dirname", Use.MAKE),),
        "RecursivelyCreateDir": (Argument(0, "dirname", Use.MAKE),),
        "CopyFile": (Argument(0, "src", Use.READ), Argument(1, "target", Use.CHANGE)),
        "RenameFile": (Argument(0, "src", Use.MOVE), Argument(1, "target", Use.MOVE_TO)),
        "WritableFile": (Argument(0, "filename", Use.CHANGE),),
    },
    "pywrap_record_io": {
        "RecordIterator": (Argument(0, "filename", Use.READ),),
        "RandomRecordReader": (Argument(0, "filename", Use.READ),),
    },
    "pywrap_saved_model": {"Save": (Argument(0, "export_dir", Use.MAKE),)},
    "fingerprints": dict.fromkeys(
        (
            "CreateFingerprintDef",
            "ReadSavedModelFingerprint",
            "SingleprintFromFP",
            "SingleprintFromSM",
        ),
        (Argument(0, "export_dir", Use.READ),),
    ),
    "pywrap_events_writer": {"EventsWriter": (Argument(0, "filename_prefix", Use.MAKE),)},
    "py_checkpoint_reader": {"CheckpointReader": (Argument(0, "filename", Use.READ_PREFIX),)},
}
METHODS = (
    ("tf_record", "TFRecordWriter", "__init__", Argument(1, "path", Use.OVERWRITE)),
    ("profiler_session", "ProfilerSession", "start", Argument(1, "logdir", Use.MAKE)),
    ("saver_of_graphs", "Saver", "save", Argument(2, "save_path", Use.MAKE)),
    ("saver_of_graphs", "Saver", "restore", Argument(2, "save_path", Use.READ_PREFIX)),
)
MATCHING = "MatchingFiles"
IN_GRAPH = "_apply_op_helper"
WILDCARD = re.compile(r"[*?\[{\\]")


class TensorFlowPaths:
    def __init__(self, redirection: Redirection) -> None:
        self.redirection, self.view = redirection, redirection.view

    def watch(self) -> None:
        self.watch_files()
        self.watch_savers()
        self.watch_operations()

    # Files

    def watch_files(self) -> None:
        for module_name, functions in FUNCTIONS.items():
            module = getattr(tf_internals, module_name)
            for name, arguments in functions.items():
                plain = getattr(module, name)
                call = redirected(self.redirection, plain, arguments)
                setattr(module, name, Redirected(plain, call))
        for module_name, kind, name, argument in METHODS:
            owner = getattr(getattr(tf_internals, module_name), kind)
            call = redirected(self.redirection, getattr(owner, name), [argument])
            setattr(owner, name, self.as_method(call))
        files = tf_internals.pywrap_file_io
        files.GetChildren = self.children(files.GetChildren)
        files.GetMatchingFiles = self.matching(files.GetMatchingFiles)

    def as_method(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def method(owner: Any, *args: Any, **kwargs: Any) -> Any:
            return self.redirection.logical(call(owner, *args, **kwargs))

        return method

    def children(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        call = redirected(self.redirection, plain, [Argument(0, "dirname", Use.READ)])

        def children(dirname: Any) -> Any:
            with self.redirection.looking():
                merged = self.view.listing(os.fsdecode(dirname))
            return call(dirname) if merged is None else merged[1]

        return children

    def matching(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that finds what really is there and was not removed, and what is in the view."""

        def matching(pattern: Any) -> list[str]:
            text = os.fsdecode(pattern)
            if not self.view.is_used() or "://" in text:
                return list(plain(pattern))
            with self.redirection.looking():
                return sorted({*self.really_there(plain, text), *self.in_view(plain, text)})

        return matching

    def really_there(self, plain: Callable[..., Any], pattern: str) -> list[str]:
        view = self.view
        found = {each: view.resolve(view.absolute(each), follow=False) for each in plain(pattern)}
        return [each for each, path in found.items() if not view.is_hidden(path)]

    def in_view(self, plain: Callable[..., Any], pattern: str) -> list[str]:
        """Returns the program's paths of what is in the view and fits a pattern."""
        wildcard = WILDCARD.search(pattern)
        fixed = os.path.dirname(pattern[: wildcard.start()] if wildcard else pattern)
        resolved = self.view.resolve(self.view.absolute(fixed))
        if not self.view.is_outside(resolved):
            return []
        place = self.view.files + resolved
        found = plain(place + pattern[len(fixed) :] if fixed else os.path.join(place, pattern))
        return [os.path.join(fixed, os.path.relpath(each, place)) for each in found]

    # Checkpoints

    def watch_savers(self) -> None:
        saver = tf_internals.functional_saver.MultiDeviceSaver
        saver.save = self.with_place(saver.save, Use.MAKE)
        saver.restore = self.with_place(saver.restore, Use.READ_PREFIX)

    def with_place(self, plain: Callable[..., Any], use: Use) -> Callable[..., Any]:
        def call(saver: Any, file_prefix: Any, *args: Any, **kwargs: Any) -> Any:
            return plain(saver, self.placed(file_prefix, use, False), *args, **kwargs)

        return call

    # Operations

    def watch_operations(self) -> None:
        pywrap, library = tf_internals.pywrap_tfe, tf_internals.op_def_library
        fast, execute = pywrap.TFE_Py_FastPathExecute, pywrap.TFE_Py_Execute
        in_graph, operations, placed = library.__dict__[IN_GRAPH], OPERATIONS, self.placed_inputs

        def fast_path(context: Any, operation: str, name: Any, *inputs: Any) -> Any:
            if operation == MATCHING and self.view.is_used():
                return self.matching_tensor(inputs[0])
            if operation in operations:
                inputs = tuple(placed(operation, inputs))
            return fast(context, operation, name, *inputs)

        def executed(handle: Any, device: Any, operation: Any, inputs: Any, *rest: Any) -> Any:
            name = operation if isinstance(operation, str) else operation.decode()
            if name in operations:
                inputs = self.tensors(placed(name, inputs))
            return execute(handle, device, operation, inputs, *rest)

        def added(op_type_name: str, name: Any = None, **inputs: Any) -> Any:
            if op_type_name == MATCHING and self.view.is_used():
                found = self.matching_tensor(inputs["pattern"])
                return op_type_name, None, found.op, [found]
            for each in operations.get(op_type_name, ()):
                paths = inputs[each.name]
                inputs[each.name] = self.placed(paths, each.use, each.at_run_time)
            return in_graph(op_type_name, name, **inputs)

        pywrap.TFE_Py_FastPathExecute, pywrap.TFE_Py_Execute = fast_path, executed
        setattr(library, IN_GRAPH, added)

    def matching_tensor(self, patterns: Any) -> Any:
        """Returns what the operation returns that lists files, with what is in the view."""
        import tensorflow as tf

        found = tf.numpy_function(matching_files, [patterns], tf.string)
        found.set_shape([None])
        return found

    def placed_inputs(self, operation: str, inputs: Any) -> list[Any]:
        new = list(inputs)
        for position, _, use, at_run_time in OPERATIONS[operation]:
            new[position] = self.placed(new[position], use, at_run_time)
        return new

    def tensors(self, inputs: list[Any]) -> list[Any]:
        import tensorflow as tf

        return [tf.convert_to_tensor(each) if is_text(each) else each for each in inputs]

    def placed(self, paths: Any, use: Use, at_run_time: bool) -> Any:
        """Returns the places of a path, of a list of paths, or of a tensor of paths."""
        if isinstance(paths, (list, tuple)):
            return [self.placed(each, use, at_run_time) for each in paths]
        if not hasattr(paths, "dtype"):
            return self.redirection.place_of(paths, use)
        value = known_value(paths)
        if value is not None:
            return self.placed_text(value, use)
        return self.placed_later(paths, use) if at_run_time else paths

    def placed_text(self, paths: Any, use: Use) -> Any:
        paths = paths.tolist() if hasattr(paths, "tolist") else paths
        if isinstance(paths, list):
            return [self.placed_text(each, use) for each in paths]
        return self.redirection.place_of(paths, use)

    def placed_later(self, paths: Any, use: Use) -> Any:
        """Returns a tensor with the places of the paths that another will have when the graph runs."""
        import tensorflow as tf

        def find(found: Any) -> Any:
            return sys.modules["numpy"].array(self.placed_text(found, use), dtype=object)

        places = tf.numpy_function(find, [paths], tf.string)
        places.set_shape(paths.shape)
        return places


def known_value(tensor: Any) -> Any:
    """Returns the value of a tensor that has one already, None for any other."""
    import tensorflow as tf

    return tf.get_static_value(tensor)


def matching_files(patterns: Any) -> Any:
    numpy = sys.modules["numpy"]
    listed = numpy.atleast_1d(patterns).tolist()
    found = {
        os.fsencode(path)
        for pattern in listed
        for path in tf_internals.pywrap_file_io.GetMatchingFiles(os.fsdecode(pattern))
    }
    return numpy.array(sorted(found), dtype=object)


def is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes, list))
