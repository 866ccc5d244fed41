"""Ties a child process to this one: the kernel kills the child when its parent is gone, even after kill -9.

Run as a program it sets the tie and becomes the child (exec), with a reaper behind it if requested. It is a program of
its own because Python code between fork and exec is unsafe in a process with threads. All of it is for Linux: elsewhere
the command runs untied.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PATIENCE_SECONDS = 5.0
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_HEARD = (*_ENDING, signal.SIGCHLD)


def tethered(command: Sequence[str]) -> list[str]:
    """Returns the command line that runs `command` tied to the calling process.

    Start it from a thread that lives as long as the process (the main thread): the kernel watches that thread.
    """
    return _through("tie", command)


def kept(command: Sequence[str]) -> list[str]:
    """Returns a command line as `tethered` does, but for the command's reaper (`keep`): end it with SIGTERM, not
    SIGKILL."""
    return _through("keep", command)


def keep(parent: int, ended: Callable[[int, int], None] = lambda child, code: None) -> None:
    """Forks: the child returns, and this process stays behind as its reaper until the child has ended, or `parent`, or
    it gets SIGTERM. Then it kills the child and all that the child has started, and ends as the child did.

    A process whose parent ends becomes the reaper's child, even if it has left its session and group: so none is
    missed. The reaper kills nothing but its own children, whose pids no other process can have: so no unrelated process
    is killed. The child leads a process group, so that a signal to its own group does not reach the reaper. Call it in
    a process with one thread, on Linux. `ended` is called in the reaper when the child has ended by itself, with its
    process id and its exit code, or the number of the signal that killed it, negative; before others are killed.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    reaper, child = os.getpid(), os.fork()
    if not child:
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _tie(reaper, signal.SIGKILL)
        return
    try:
        _let_go()
        _tie(parent, signal.SIGTERM)
        if (code := _await_end(child)) is not None:
            ended(child, code)
        _end_like(_sweep(child))
    except Exception as error:
        print(f"the reaper of process {child} failed: {error!r}", file=sys.stderr)
    finally:
        os._exit(1)


def _let_go() -> None:
    """Closes the files that the child has: processes at their other end must see the child's end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _await_end(child: int) -> int | None:
    """Waits until the child has ended, or this process must end. Returns the child's exit code or a negative signal, or
    None. Other children that end are collected."""
    while signal.sigwait(_HEARD) not in _ENDING:
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if ended.si_pid == child:
                return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            os.waitpid(ended.si_pid, 0)
    return None


def _sweep(child: int) -> int:
    """Kills until no children are left, or none that it can kill. Returns the child's wait status."""
    signals, until = int(signal.SIGKILL), time.monotonic() + PATIENCE_SECONDS
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < until:
            for pid in _children():
                with contextlib.suppress(PermissionError):
                    os.kill(pid, signal.SIGKILL)
            ended, how = os.waitpid(-1, os.WNOHANG)
            if ended == child:
                signals = how
            elif not ended:
                signal.sigtimedwait((signal.SIGCHLD,), 0.05)
    return signals


def _children() -> Iterator[int]:
    """Yields this process's children, ended ones included."""
    mine = str(os.getpid()).encode()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{name}/stat", "rb") as file:
            if file.read().rpartition(b")")[2].split()[1] == mine:
                yield int(name)


def _end_like(how: int) -> None:
    """Ends like another process, from its wait status."""
    if os.WIFEXITED(how):
        os._exit(os.WEXITSTATUS(how))
    import resource  # noqa: PLC0415  (nothing that is not needed, as below)

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has left a core dump already
    number = os.WTERMSIG(how)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)


def _tie(parent: int, number: signal.Signals) -> None:
    """Has the kernel send this process the signal when its parent is gone; sends it itself if the parent is already
    gone."""
    _prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def _prctl(option: int, value: int) -> None:
    import ctypes  # noqa: PLC0415  (this program starts for every child: nothing it does not need)

    ctypes.CDLL(None, use_errno=True).prctl(option, value)


def _through(way: str, command: Sequence[str]) -> list[str]:
    return [sys.executable, "-I", "-S", __file__, way, str(os.getpid()), *command]


def main(way: str, parent: int, command: Sequence[str]) -> None:
    """Becomes the command, or its reaper. Is killed if the parent is gone already."""
    if sys.platform == "linux":
        if way == "keep":
            keep(parent)
        else:
            _tie(parent, signal.SIGKILL)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
