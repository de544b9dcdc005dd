"""Enters a view of the file system, in which this process and its children change nothing outside of the view."""

from __future__ import annotations

import errno
import functools
import os
import posix
import shutil
from collections.abc import Callable
from typing import Any

from ..base import namespaces


def enter_view(entrance: str) -> None:
    """Enters the view of a process, with its root. This process must have one thread."""
    process, _, root = entrance.partition(":")
    if namespaces.enter_mounts_of(int(process), root):
        for name in ("rename", "replace"):
            renaming = with_folders(getattr(os, name))
            for module in (os, posix):  # so that pickle finds it, too
                setattr(module, name, renaming)


def with_folders(plain: Callable[..., None]) -> Callable[..., None]:
    """Returns a function that also renames folders which were there before the view; a user's overlay refuses that."""

    @functools.wraps(plain)
    def rename(src: Any, dst: Any, **options: Any) -> None:
        try:
            plain(src, dst, **options)
        except OSError as error:
            if error.errno != errno.EXDEV or options or not is_in_one_file_system(src, dst):
                raise
            if os.path.isdir(dst):
                os.rmdir(dst)  # as rename(2): one that is empty is replaced
            shutil.copytree(src, dst, symlinks=True)
            shutil.rmtree(src)

    return rename


def is_in_one_file_system(source: Any, target: Any) -> bool:
    """Tells whether a folder could be renamed outside of the view."""
    parents = {os.path.dirname(os.path.abspath(path)) for path in (source, target)}
    return os.path.isdir(source) and len({os.stat(parent).st_dev for parent in parents}) == 1
