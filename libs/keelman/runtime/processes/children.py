"""Starts child processes that outlive their starter, and finds them again.

A child leads its own session, writes to a file and not to a pipe, and is recorded (pid, start of the process, command,
generation), so that the next starter adopts it instead of starting it twice. A pidfd reports its end, which works for
adopted processes as for our own. The rest of its session is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from keelman.runtime.home import write_json
from keelman.runtime.processes import exit_record
from keelman.runtime.processes.process_trees import MARK, family, is_marked, kill_all, marked_leader, start_of
from keelman.runtime.processes.users import User, open_for

TITLE_KEEPS_ENVIRONMENT = {"SPT_NOENV": "1"}  # setproctitle would write over what /proc shows, and so over the mark
WAITING = ("/bin/sh", "-c", 'IFS= read -r go && [ "$go" = go ] && exec "$@" < /dev/null', "sh")
"""Becomes the command that follows once it reads "go"; ends when no process is left that could write that."""
POLL_SECONDS = 0.2
SWEEP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ChildRecord:
    """A child's record.json in its folder, by which the next starter finds it again.

    `pid` is 0 from just before the start until the process exists. `start` distinguishes it from a later one of the
    same pid; `start_time` is for people (Unix seconds); `log_offset` is the size of the log file at the start; `ended`
    means that its end was processed. `ready` means that it has passed its health check: a starter that adopts it need
    not check first. `limited_by`, `group` and `memory_limit` (bytes) are for its starter: the means that limits it, and
    its group or unit.
    """

    name: str
    uid: str
    generation: int
    restarts: int
    command: tuple[str, ...]
    pid: int = 0
    start: str = ""
    start_time: float = 0.0
    log_offset: int = 0
    ended: bool = False
    ready: bool = False
    limited_by: str = ""
    group: str = ""
    memory_limit: int = 0


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a child. `code` is negative for a signal, and None if the end was not observed and the child left no
    record."""

    code: int | None
    reason: str = ""
    message: str = ""


class Child:
    """One process, started or adopted, until it ends. Used from one event loop."""

    def __init__(self, folder: Path, record: ChildRecord, pidfd: int | None) -> None:
        self.folder = folder
        self.record = record
        self.exit: Exit | None = None
        self._pidfd = pidfd
        self._poll: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int:
        """The process id, which is its session's id too."""
        return self.record.pid

    def watch(self, ended: Callable[[], None]) -> None:
        """Calls `ended` once, in the running loop, as soon as the process is gone; `exit` is set by then."""
        loop = asyncio.get_running_loop()
        if self._pidfd is not None:
            loop.add_reader(self._pidfd, self._end, ended)
        else:
            self._poll = loop.call_later(POLL_SECONDS, self._look, ended)

    def terminate(self) -> None:
        """Sends SIGTERM to this one process."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the process and its whole family."""
        rest = family(self.pid)  # first: once it is dead, processes that left its session can no longer be found
        self._signal(signal.SIGKILL)
        kill_all(rest)

    def release(self) -> None:
        """Stops watching; the process continues."""
        if self._pidfd is not None:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._poll is not None:
            self._poll.cancel()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, number)
            elif self.exit is None and start_of(self.pid) == self.record.start:
                os.kill(self.pid, number)

    def _look(self, ended: Callable[[], None]) -> None:
        if start_of(self.pid) == self.record.start:
            self.watch(ended)
        else:
            self._end(ended)

    def _end(self, ended: Callable[[], None]) -> None:
        self.release()
        code: int | None = None
        with contextlib.suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if pid else None
        self.exit = exit_of(self.folder, self.pid, code)
        ended()


def start(
    folder: Path,
    record: ChildRecord,
    *,
    log: Path,
    environment: Mapping[str, str],
    umask: int | None = None,
    user: User | None = None,
    owner: User | None = None,
    enter: Callable[[int], None] | None = None,
) -> Child:
    """Starts `record.command` in `folder`, as `user` if given, with its output appended to `log`, which belongs to
    `owner`, else to `user`.

    The record is written before and after the start: if the starter is killed in between, the next one finds the
    process by its mark. `enter` is called with the process's id before its command begins; if it raises an OSError, or
    this process is killed meanwhile, the command never begins. Raises OSError if it cannot be started.
    """
    exit_file = folder / "exit.json"
    exit_file.unlink(missing_ok=True)
    write_record(folder, record)
    named = {**environment, **TITLE_KEEPS_ENVIRONMENT, MARK: str(folder), exit_record.VARIABLE: str(exit_file)}
    with open(open_for(owner or user, log), "ab") as output:
        record = replace(record, log_offset=output.tell(), start_time=time.time())
        process = subprocess.Popen(
            record.command if enter is None else (*WAITING, _program(record.command[0]), *record.command[1:]),
            cwd=folder,
            env=named,
            stdin=subprocess.DEVNULL if enter is None else subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
            umask=-1 if umask is None else umask,
            **(user.popen if user is not None else {}),
        )
    pid = process.pid
    if enter is not None:
        try:
            enter(pid)
        except OSError:
            process.kill()
            process.communicate()
            raise
    process.returncode = 0  # it outlives this object on purpose: a pidfd watches it and waitpid collects it
    pidfd = _pidfd(pid)
    record = replace(record, pid=pid, start=start_of(pid) or "")
    write_record(folder, record)
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError), process.stdin as gate:  # it was killed: its end is noticed elsewhere
            gate.write(b"go\n")
    return Child(folder, record, pidfd)


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return path


def adopt(folder: Path, *, owner: int | None = None) -> tuple[ChildRecord, Child | None] | None:
    """Returns the last record of a folder and its process if that still runs; None if the folder has no record.

    Called once for each folder when the starter starts. A record without a pid (its writer was killed while starting
    the process) is completed from the process that carries the folder's mark, if there is one.
    """
    record = read_record(folder, owner=owner)
    if record is None:
        return None
    if record.ended:
        return record, None
    if not record.pid:
        pid = marked_leader(folder)
        if pid is None:
            return record, None
        with contextlib.suppress(psutil.Error):
            record = replace(record, start_time=psutil.Process(pid).create_time())
        record = replace(record, pid=pid, start=start_of(pid) or "")
        write_record(folder, record)
    # The pidfd first: if the start still matches afterwards, the pidfd is of that very process.
    pidfd = _pidfd(record.pid)
    if record.start and start_of(record.pid) == record.start:
        return record, Child(folder, record, pidfd)
    if pidfd is not None:
        os.close(pidfd)
    return record, None


def exit_of(folder: Path, pid: int, code: int | None) -> Exit:
    """Returns a process's end: from the code that its parent collected (None for an adopted process), and its own
    record."""
    left = exit_record.read(folder / "exit.json", pid)
    if left is None:
        return Exit(code)
    return Exit(left.exit_code if code is None else code, left.reason, left.message)


def write_record(folder: Path, record: ChildRecord) -> None:
    """Writes the folder's record.json. Raises OSError."""
    write_json(folder / "record.json", record)


def read_record(folder: Path, *, owner: int | None = None) -> ChildRecord | None:
    """Returns the folder's record; None if it cannot be read, or does not belong to `owner`.

    If others may write into the folder, a record of theirs could name any process of the host.
    """
    try:
        with open(os.open(folder / "record.json", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb") as file:
            if owner is not None and os.fstat(file.fileno()).st_uid != owner:
                return None
            fields = json.loads(file.read())
        return ChildRecord(**{**fields, "command": tuple(fields["command"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


async def sweep(folder: Path, record: ChildRecord, *, seen: bool) -> list[int]:
    """Kills the remaining processes of an ended child and waits until they are gone, so that their ports are free.

    These are the processes that carry the folder's mark and, if the child's end was watched (`seen`), those of its
    session; otherwise another process may have got its pid since. Returns the processes that were left. Raises
    TimeoutError if one does not end within ten seconds.
    """

    def rest() -> list[int]:
        session = family(record.pid) if seen and start_of(record.pid) is None else []
        marked = [p for p in psutil.pids() if is_marked(p, folder) and start_of(p) is not None]
        return sorted({*session, *marked})

    processes = left = await asyncio.to_thread(rest)
    async with asyncio.timeout(SWEEP_SECONDS):
        while left:
            kill_all(left)
            await asyncio.sleep(0.01)
            left = await asyncio.to_thread(rest)
    return processes


def own_environment(services: Sequence[str]) -> dict[str, str]:
    """Returns this process's environment for a child, without settings of services: they would win over the child's
    file."""
    prefixes = tuple(f"KEELMAN_{s.upper()}_" for s in services)
    mine = (exit_record.VARIABLE, MARK)
    return {k: v for k, v in os.environ.items() if not k.startswith(prefixes) and k not in mine}


def _pidfd(pid: int) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None
