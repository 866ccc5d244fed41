"""One process that hosts the copy runs of Java tasks for all tests of a pytest worker.

It replaces one virtual machine for each run by one for all, as a slot does for tasks of a plugin.

A test uses each run as if it were a process: SIGTERM's method drains it, and a kill of a run ends the process; the next
run has a new one. `support.java.hosting` is the process.
"""

from __future__ import annotations

import atexit
import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keelman.runtime.processes.die_with_parent import tethered
from support.places import with_tests

ANSWER_SECONDS = 120


class HostedRun:
    """A copy run, or a request, in the shared process; with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, host: SharedHost, number: int) -> None:
        self.returncode: int | None = None
        self.answer: dict[str, Any] = {}
        self._host, self._number = host, number
        self._ended = threading.Event()

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its exit code: 0 if it was drained, 1 if it failed for good, or that of the process."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("a hosted copy run", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def terminate(self) -> None:
        """Drains it."""
        self._host.order({"drain": self._number})

    def kill(self) -> None:
        """Kills the process, if it has not ended."""
        if self.returncode is None:
            self._host.kill()

    def end(self, code: int, answer: Mapping[str, Any]) -> None:
        """Sets its exit code and its answer."""
        self.answer = dict(answer)
        self.returncode = code
        self._ended.set()


class SharedHost:
    """The process, from the test's side. All runs in it get its exit code when it ends."""

    def __init__(self) -> None:
        command = tethered([sys.executable, "-m", "support.java.hosting"])
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=with_tests()
        )
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._runs: dict[int, HostedRun] = {}
        threading.Thread(target=self._hear, daemon=True).start()

    @property
    def lives(self) -> bool:
        """Whether it accepts more work."""
        return self._process.poll() is None

    def begin(self, log: Path, work: Mapping[str, Any]) -> HostedRun:
        """Starts a run. The process writes to this log from now on."""
        log.touch()
        with self._lock:
            number = next(self._numbers)
            run = self._runs[number] = HostedRun(self, number)
        self.order({"number": number, "log": str(log), **work})
        return run

    def order(self, order: Mapping[str, Any]) -> None:
        """Sends the order to the process, if that has not ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._process.wait()

    def kill(self) -> None:
        """Kills it with all its runs."""
        self._process.kill()
        self._process.wait()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            self._runs.pop(told["number"]).end(told["code"], told["answer"])
        code = self._process.wait()
        with self._lock:
            for run in self._runs.values():
                run.end(code, {})
            self._runs.clear()


_host: SharedHost | None = None


def shared_host() -> SharedHost:
    """This process's shared host, started if none lives."""
    global _host  # noqa: PLW0603  one for all tests
    if _host is None or not _host.lives:
        _host = SharedHost()
        atexit.register(_host.kill)
    return _host


@contextmanager
def hosted_java(bootstrap: str, config: Mapping[str, str], log: Path, **spec: Any) -> Iterator[HostedRun]:
    """A run that copies for one Java task, to be killed or drained; `die` names where its process kills itself.

    It ends with the block.
    """
    run = shared_host().begin(log, {"host": {"bootstrap": bootstrap, "config": dict(config), **spec}})
    try:
        yield run
    finally:
        run.kill()
        run.wait()


def previewed(log: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """The preview of a task of the kit's connectors."""
    return _answer(log, "preview", request)


def replayed(log: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """The result of replaying the dead letters of one of the kit's connectors."""
    return _answer(log, "replay", request)


def _answer(log: Path, query: str, request: Mapping[str, Any]) -> dict[str, Any]:
    run = shared_host().begin(log, {query: request})
    try:
        assert run.wait(ANSWER_SECONDS) == 0, log.read_text(errors="replace")[-3000:]
    finally:
        run.kill()
    return run.answer
