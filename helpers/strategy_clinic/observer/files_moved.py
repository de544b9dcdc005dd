"""Observes which files get another name, or are copied, whoever does it."""

from __future__ import annotations

import os
from typing import Any

from .audit import listen
from .context import Context
from .events import FileMoved, SaveKind
from .patching import Call

MOST_FILES = 300
# What Python says to audit hooks before it does it, and whether the file keeps its name, too; each begins with the path as
# it was and the new one.
EVENTS = {"os.rename": False, "os.link": True, "os.symlink": True, "shutil.copyfile": True}
COMPILED = "__pycache__"  # folders of what Python writes when it imports


class FilesMoved:
    def __init__(self, context: Context) -> None:
        self.context = context

    def watch(self) -> None:
        listen(self.context, EVENTS, self.happens)

    def watch_tensorflow(self) -> None:
        import tensorflow as tf

        wrap = self.context.patches.wrap
        wrap(tf.io.gfile, "rename", after=self.renamed_by_tensorflow)
        wrap(tf.io.gfile, "copy", after=self.copied_by_tensorflow)

    def happens(self, event: str, arguments: Any) -> None:
        self.moved(arguments[0], arguments[1], EVENTS[event])

    def renamed_by_tensorflow(self, _: Any, call: Call) -> None:
        self.moved(call["src"], call["dst"], False)

    def copied_by_tensorflow(self, _: Any, call: Call) -> None:
        self.moved(call["src"], call["dst"], True)

    def moved(self, source: Any, target: Any, copied: bool) -> None:
        paths = [each for each in (source, target) if isinstance(each, (str, bytes, os.PathLike))]
        texts = [os.fsdecode(each) for each in paths]  # a descriptor is no path
        if len(texts) < 2 or COMPILED in texts[1] or not self.context.is_first("moved", *texts):
            return
        if self.context.count("files moved") <= MOST_FILES:
            stack = self.context.provenance.plain_stack()
            self.context.emit(FileMoved(stack, texts[0], texts[1], copied))
        if not copied and self.context.is_first("moved to", texts[1]):
            for kind in SaveKind:
                self.context.forget("saved", kind, texts[0])
