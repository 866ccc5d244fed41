"""Finds processes by session and descent, distinguishes a process from a later one of the same pid, and kills whole
trees."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import psutil

MARK = "KEELMAN_CHILD"
"""The environment variable with the folder for which a process was started."""
PROC = Path("/proc/self/stat").exists()


def start_of(pid: int) -> str | None:
    """Returns when a process started, as a text that is equal for the same process only; None if it is gone or a
    zombie."""
    if PROC:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in (b"Z", b"X") else f"{_boot()}:{int(fields[19])}"
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.3f}"
    except psutil.NoSuchProcess:
        return None


def is_marked(pid: int, folder: Path) -> bool:
    """Returns True for a process that was started for this folder, and for its descendants. A folder of the same name
    in another mount namespace, such as that of a container, is another folder."""
    try:
        return psutil.Process(pid).environ().get(MARK) == str(folder) and _has_folder(pid, folder)
    except (psutil.Error, OSError):
        return False


def _has_folder(pid: int, folder: Path) -> bool:
    """Whether a process has the same folder under this path; a folder that is gone, whether it has our mounts."""
    if not PROC:
        return True
    theirs, ours = (_identity(root / folder.relative_to("/")) for root in (Path(f"/proc/{pid}/root"), Path("/")))
    if theirs is None and ours is None:
        return Path(f"/proc/{pid}/ns/mnt").readlink() == Path("/proc/self/ns/mnt").readlink()
    return theirs == ours


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def marked_leader(folder: Path) -> int | None:
    """Returns the leader of a session that was started for this folder."""
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == pid and is_marked(pid, folder):
                return pid
    return None


def family(leader: int) -> list[int]:
    """Returns all living processes of a session and their descendants, the leader included. One pass over the process
    table."""
    return families([leader])[leader]


def families(leaders: Iterable[int]) -> dict[int, list[int]]:
    """Returns the `family` of each leader in one pass, which takes some 10 ms on a busy host: work for a thread."""
    members: dict[int, list[int]] = {leader: [] for leader in leaders}
    owner: dict[int, int] = {}
    others: list[tuple[int, int]] = []
    for pid in psutil.pids():
        try:
            session = os.getsid(pid)
        except OSError:
            continue
        if session in members:
            owner[pid] = session
        else:
            with contextlib.suppress(psutil.Error):
                others.append((pid, psutil.Process(pid).ppid()))
    # A grandchild can be listed before its parent: repeat until nothing is added.
    added = bool(owner)
    while added:
        added = False
        for pid, parent in others:
            if pid not in owner and parent in owner:
                owner[pid] = owner[parent]
                added = True
    for pid, leader in owner.items():
        if start_of(pid) is not None:
            members[leader].append(pid)
    return members


def kill_all(pids: Iterable[int]) -> None:
    """Sends SIGKILL to each process that still exists."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
