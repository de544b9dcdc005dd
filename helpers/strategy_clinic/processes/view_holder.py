"""Builds a view of the file system in a mount namespace, and keeps it until standard input ends.

    python -c "from strategy_clinic.processes.view_holder import main; main()" STATE WORK HIDDEN SHARED

In the view, everything can be read and written; what is written lands in the folder STATE, and nothing else changes. Each
folder that holds no mount is an overlay whose upper layer is the folder with the same path below STATE. Other folders, such
as `/`, are made anew in STATE, with their files. HIDDEN is an empty folder in the view, but for SHARED in it, which is the
real one. Prints one line of JSON: what went wrong, or what can only be read, and whether a user namespace was needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import Iterator

from ..base import namespaces
from ..base.namespaces import BIND, PRIVATE, READ_ONLY, RECURSIVE, RELATIME, REMOUNT, mount

# Kinds of file systems that hold no files of a user, as they are in the view.
OF_THE_KERNEL = set(
    "autofs binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fusectl hugetlbfs mqueue"  # noqa: SIM905
    " nsfs proc pstore rpc_pipefs securityfs selinuxfs sysfs tracefs".split()
)
SERVICES = "/run"  # holds sockets, which an overlay cannot connect
SHARED_MEMORY = "/dev/shm"
OLD_LIBRARY = (2, 34)  # before it, glibc wants a tmpfs there, and makes semaphores nowhere else
MOST_MOUNTS = 1000
LARGEST_COPY = 1 << 30  # bytes of one file in a folder that holds a mount
OCTAL = re.compile(r"\\([0-7]{3})")  # as mountinfo writes spaces


class View:
    def __init__(self, state: str, work: str) -> None:
        self.state, self.work = state, work
        self.is_new = not os.path.isdir(state + "/proc")  # which every view has
        self.in_user_namespace = namespaces.unshare_as_user(namespaces.NEW_MOUNTS)
        mount("none", "/", flags=RECURSIVE | PRIVATE)
        self.points = dict(mount_points())
        self.folders_of_mounts = {up for point in self.points for up in folders_above(point)}
        self.mounted, self.read_only = 0, list[str]()

    def build(self) -> None:
        self.remake("/")

    def inside(self, path: str) -> str:
        return self.state + path

    def add(self, path: str) -> None:
        """Adds what is at a path to the view."""
        status = os.lstat(path)
        if path == "/dev":
            self.add_devices()
        elif self.points.get(path) in OF_THE_KERNEL:
            self.bind(path, RECURSIVE)
        elif path == SERVICES:
            self.bind(path, RECURSIVE)
            self.forbid_writing(path)
        elif stat.S_ISLNK(status.st_mode):
            if not os.path.lexists(self.inside(path)) and self.is_new:
                os.symlink(os.readlink(path), self.inside(path))
        elif not stat.S_ISDIR(status.st_mode):
            self.add_file(path, status)
        elif path in self.folders_of_mounts:
            self.remake(path)
        else:
            self.overlay(path)

    def remake(self, path: str) -> None:
        """Makes a folder that holds mounts, and adds what is in it; one that this user may not read stays empty."""
        make_folder(self.inside(path), path)
        if not os.access(path, os.R_OK | os.X_OK):
            return
        for name in sorted(os.listdir(path)):
            with contextlib.suppress(FileNotFoundError):  # removed in the meantime
                self.add(os.path.join(path, name))

    def add_devices(self) -> None:
        """Adds `/dev` as it is, but for the files in shared memory, whose changes land in the state."""
        for path in ("/dev", SHARED_MEMORY):
            if os.path.isdir(path):
                make_folder(self.inside(path), path)
        if not os.path.isdir(SHARED_MEMORY):
            return self.bind("/dev", RECURSIVE)
        with opened(self.inside(SHARED_MEMORY)) as state:
            self.bind("/dev", RECURSIVE)
            if wants_tmpfs():
                mount("tmpfs", self.inside(SHARED_MEMORY), "tmpfs", options="mode=1777")
            else:
                self.overlay(SHARED_MEMORY, state)

    def add_file(self, path: str, status: os.stat_result) -> None:
        """Copies a file, which no overlay can hold alone; a large one, a device or a socket can only be read."""
        is_small = stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_COPY
        if is_small and path not in self.points:
            if self.is_new and os.access(path, os.R_OK):
                shutil.copy2(path, self.inside(path))
            return
        if not os.path.lexists(self.inside(path)):
            os.close(os.open(self.inside(path), os.O_CREAT | os.O_WRONLY, 0o600))
        self.bind(path)
        self.forbid_writing(path)

    def overlay(self, path: str, state: str = "") -> None:
        """Mounts a folder whose changes land in the state; where that cannot be done, it can only be read."""
        target = self.inside(path)
        make_folder(target, path)
        work = os.path.join(self.work, str(self.mounted))
        os.mkdir(work)
        # By descriptors, since in the options of a mount a path must not hold a comma or a colon.
        with opened(path) as lower, opened(target) as upper, opened(work) as aside:
            options = f"lowerdir={lower},upperdir={state or upper},workdir={aside},"
            options += "userxattr" if self.in_user_namespace else "redirect_dir=on"
            try:
                mount("overlay", target, "overlay", options=options)
            except OSError:
                self.bind(path, RECURSIVE)
                self.forbid_writing(path)
        self.count()

    def bind(self, path: str, flags: int = 0) -> None:
        if os.path.isdir(path):
            os.makedirs(self.inside(path), exist_ok=True)
        mount(path, self.inside(path), flags=BIND | flags)
        self.count()

    def forbid_writing(self, path: str) -> None:
        """Makes what is bound there, with all mounts in it, something that can only be read."""
        below = [point for point in self.points if point.startswith(f"{path}{os.sep}")]
        for each in (path, *below):
            flags = BIND | REMOUNT | READ_ONLY | kept_flags(each)
            mount("none", self.inside(each), flags=flags)
        self.read_only.append(path)

    def count(self) -> None:
        self.mounted += 1
        if self.mounted > MOST_MOUNTS:
            raise OSError(f"the view needs more than {MOST_MOUNTS} mounts")

    def hide(self, hidden: str, shared: str) -> None:
        place = self.inside(hidden)
        mount("tmpfs", place, "tmpfs", options="mode=700")
        os.makedirs(self.inside(shared))
        mount(shared, self.inside(shared), flags=BIND)


def wants_tmpfs() -> bool:
    name, version = platform.libc_ver()
    return name == "glibc" and tuple(map(int, version.split(".")[:2])) < OLD_LIBRARY


def kept_flags(path: str) -> int:
    """Returns the flags of a mount that a user may not clear, as mount(2) has them; those of statvfs are the same but one."""
    flags = os.statvfs(path).f_flag
    same = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME
    return flags & same | (RELATIME if flags & os.ST_RELATIME else 0)


def mount_points() -> Iterator[tuple[str, str]]:
    """Yields where file systems are mounted, and their kinds, as mountinfo of proc(5) tells."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            fields, _, rest = line.partition(" - ")
            path = OCTAL.sub(lambda octal: chr(int(octal[1], 8)), fields.split()[4])
            with contextlib.suppress(
                FileNotFoundError, NotADirectoryError
            ):  # beneath another mount
                with contextlib.suppress(PermissionError):
                    os.lstat(path)
                yield path, rest.split()[0]


def folders_above(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def make_folder(path: str, like: str) -> None:
    """Makes a folder with the owner, permissions and times of another.

    One that another user owns cannot be had in a user namespace: it is this user's there, who may write to it no more than
    to the other.
    """
    if like != "/":
        if os.path.isdir(path):
            return
        os.mkdir(path)
    status, mode = os.lstat(like), stat.S_IMODE(os.lstat(like).st_mode)
    try:
        os.chown(path, status.st_uid, status.st_gid)
    except OSError:
        may = [bit for bit in (os.R_OK, os.W_OK, os.X_OK) if os.access(like, bit)]
        mode = sum(may) << 6 | mode & 0o1077
    os.chmod(path, mode)


@contextlib.contextmanager
def opened(path: str) -> Iterator[str]:
    descriptor = os.open(path, os.O_PATH)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def main() -> None:
    state, work, hidden, shared = sys.argv[1:]
    try:
        view = View(state, work)
        view.build()
        view.hide(hidden, shared)
        reply = {"read_only": view.read_only, "user": view.in_user_namespace}
    except OSError as error:
        reply = {"error": str(error)}
    print(json.dumps(reply), flush=True)
    if "error" not in reply:
        sys.stdin.buffer.read()
