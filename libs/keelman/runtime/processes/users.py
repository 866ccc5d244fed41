"""Finds the user under which processes run if their starter is root, and hands files over to this user."""

from __future__ import annotations

import os
import pwd
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keelman.model.errors import InvalidArgument

LEAST, MOST = 1000, 2**31 - 2
"""The numbers that users of a range may have: those below are the system's own."""


@dataclass(frozen=True, slots=True)
class User:
    """A user of this system."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str

    @property
    def popen(self) -> dict[str, Any]:
        """Arguments of subprocess.Popen that run a process as this user and with no other rights."""
        return {"user": self.uid, "group": self.gid, "extra_groups": list(self.groups)}


def users_range(setting: str, text: str) -> range:
    """Returns the numbers of a setting such as 600000-604095. Raises InvalidArgument, naming the setting."""
    found = re.fullmatch(r"([0-9]{1,10})-([0-9]{1,10})", text)
    first, last = (int(found[1]), int(found[2])) if found else (0, 0)
    if not LEAST <= first < last <= MOST:
        raise InvalidArgument.of(setting, text, f"first-last, numbers from {LEAST} to {MOST}, e.g. 600000-604095")
    return range(first, last + 1)


def find_user(setting: str, name: str) -> User:
    """Returns a user by name or number. Raises InvalidArgument, naming the setting, for a user that the system does not
    know."""
    try:
        entry = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except (KeyError, OverflowError):
        raise InvalidArgument.of(setting, name, "a user of this system, by name or number") from None
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return User(entry.pw_name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir)


def hand_over(folder: Path, user: User) -> None:
    """Changes the owner of a folder and its content to the user, unless the user owns the folder already: then other
    processes may be using it.

    No link is followed. Raises OSError.
    """
    if folder.stat().st_uid == user.uid:
        return
    for _, folders, files, descriptor in os.fwalk(folder, topdown=False):
        for name in (*folders, *files):
            os.chown(name, user.uid, user.gid, dir_fd=descriptor, follow_symlinks=False)
    os.chown(folder, user.uid, user.gid, follow_symlinks=False)


def open_for(user: User | None, path: Path) -> int:
    """Opens a file for appending that the user owns and others cannot read; creates it if it is missing.

    In a folder of the user's a link may be in its place: that is refused. Raises OSError.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    if user is None:
        return descriptor
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise OSError(f"{path} is not a regular file")
        os.fchown(descriptor, user.uid, user.gid)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
