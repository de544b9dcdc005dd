"""Kills the process at a chosen moment: after a step, after a save, or while a file is being written."""

from __future__ import annotations

import contextlib
import sys
import zipfile
from typing import Any

from ..base import tf_internals
from .context import Context, kill_process
from .patching import Call

SAVES = "save"  # the group of all patched functions that save


class Kills:
    def __init__(self, context: Context) -> None:
        self.context, self.saves = context, 0
        if context.settings.die_at_step:
            context.after_step.append(self.step_ended)

    def watch(self) -> None:
        if self.context.settings.die_in_save:
            self.context.patches.wrap(zipfile.ZipFile, "close", before=self.archive_closes)

    def watch_tensorflow(self) -> None:
        if self.context.settings.die_in_save:
            wrap = self.context.patches.wrap
            wrap(tf_internals.gen_io_ops, "merge_v2_checkpoints", before=self.writes)

    def watch_h5py(self) -> None:
        if self.context.settings.die_in_save:
            self.context.patches.wrap(sys.modules["h5py"].File, "close", before=self.writes)

    def kill(self) -> None:
        kill_process(self.context.first_process)

    def step_ended(self) -> None:
        if self.context.steps.count == self.context.settings.die_at_step:
            self.kill()

    # Saves

    def save_begins(self, _: Call) -> None:
        """Counts saves; one that is a part of another is not a save of its own."""
        if not self.is_saving:
            self.saves += 1

    def save_ended(self) -> None:
        if self.context.settings.die:
            self.kill()

    def save_not_flushed(self) -> None:
        """Kills the process while the program has its file open, whose end is in memory."""
        if self.saves == self.context.settings.die_in_save > 0:
            self.kill()

    @property
    def is_saving(self) -> bool:
        return SAVES in self.context.patches.thread.groups

    def archive_closes(self, call: Call) -> None:
        """What was written before the end is on the disk: a large file would be there in part."""
        with contextlib.suppress(Exception):  # of an archive that is read, or in memory
            if self.is_chosen:
                call.owner.fp.flush()
        self.writes(call)

    def writes(self, _: Any) -> None:
        """Kills the process where the first part of a file is written and its end is not."""
        if self.is_chosen:
            self.kill()

    @property
    def is_chosen(self) -> bool:
        return self.is_saving and self.saves == self.context.settings.die_in_save
