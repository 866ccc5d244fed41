"""Becomes a command as another user, in a mount namespace of its own: folders hidden, temporary files its own.

Started as root: `python -s -P -m keelman.runtime.processes.confined PLAN command...`, with the plan as JSON; until it
has changed its user it imports nothing from folders that the user can write. The user need
not have an account: /etc/passwd and /etc/group have a line for it there, since Java, Hadoop's libraries and others fail
for a number without a name. The process gets no rights by any program that it runs (no_new_privs). Linux only.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from keelman.runtime.processes.private_hosts import BIND, REC, NotPossible, call, mount, unshare

FAILED = 3
"""Exit code of the program if it cannot do what the plan says."""
TEMPORARY = ("/tmp", "/var/tmp")
SHARED_MEMORY = "/dev/shm"
_NO_NEW_PRIVS = 38
_READ_ONLY, _NO_SUID, _NO_DEV = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Confinement:
    """The confinement of a process: its user, the folder that becomes /tmp and /var/tmp, the folders that it sees empty
    and, of those below /tmp, the ones that it keeps."""

    name: str
    uid: int
    gid: int
    temporary: str
    hidden: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    def command(self, command: Sequence[str]) -> tuple[str, ...]:
        """Returns the command line that runs `command` so; for root."""
        return (sys.executable, "-s", "-P", "-m", __name__, json.dumps(asdict(self)), *command)


def enter(plan: Confinement) -> None:
    """Confines this process. Call it before the process has a second thread. Raises NotPossible, OSError."""
    unshare()
    _hide(plan.hidden)
    _replace_temporary(plan)
    _tmpfs(SHARED_MEMORY, "mode=1777", 0)
    _add_line("/etc/passwd", f"{plan.name}:x:{plan.uid}:{plan.gid}::/nonexistent:/usr/sbin/nologin\n")
    _add_line("/etc/group", f"{plan.name}:x:{plan.gid}:\n")
    if reason := call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0):
        raise NotPossible(f"no_new_privs: {reason}")
    os.setgroups([])
    os.setresgid(plan.gid, plan.gid, plan.gid)
    os.setresuid(plan.uid, plan.uid, plan.uid)


def _hide(folders: Sequence[str]) -> None:
    for folder in folders:
        if os.path.isdir(folder):
            _tmpfs(folder, "mode=0,size=4k", _READ_ONLY)


def _tmpfs(folder: str, options: str, flags: int) -> None:
    if os.path.isdir(folder):
        mount("tmpfs", folder, kind="tmpfs", flags=flags | _NO_SUID | _NO_DEV, options=options)


def _replace_temporary(plan: Confinement) -> None:
    """Mounts the own folder over those for temporary files; what is kept below them is mounted again."""
    below = tuple(f"{folder}/" for folder in TEMPORARY)
    kept = [(path, os.open(path, os.O_PATH)) for path in plan.kept if path.startswith(below) and os.path.isdir(path)]
    own = os.open(plan.temporary, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY)  # in a folder that the user can write
    for folder in TEMPORARY:
        if os.path.isdir(folder):
            mount(f"/proc/self/fd/{own}", folder, flags=BIND)
    for path, descriptor in kept:
        os.makedirs(path, mode=0o755, exist_ok=True)
        mount(f"/proc/self/fd/{descriptor}", path, flags=BIND | REC)
    for descriptor in (own, *(descriptor for _, descriptor in kept)):
        os.close(descriptor)


def _add_line(file: str, line: str) -> None:
    """Mounts a copy of a file with one more line over it."""
    text = Path(file).read_bytes() if os.path.exists(file) else b""
    end = b"" if text.endswith(b"\n") or not text else b"\n"
    descriptor, path = tempfile.mkstemp(prefix="keelman-")
    with os.fdopen(descriptor, "wb") as copy:
        copy.write(text + end + line.encode())
    try:
        os.chmod(path, 0o644)
        mount(path, file, flags=BIND)
    finally:
        os.unlink(path)


def main(plan: str, command: Sequence[str]) -> None:
    """Becomes the command; without one, only tries the plan."""
    try:
        fields = json.loads(plan)
        enter(Confinement(**{**fields, "hidden": tuple(fields["hidden"]), "kept": tuple(fields["kept"])}))
        if command:
            os.execvp(command[0], list(command))
    except (NotPossible, OSError) as error:
        print(f"it cannot be confined: {error}", file=sys.stderr)
        sys.exit(FAILED)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
