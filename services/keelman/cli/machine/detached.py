"""Starts `keelman up` as a process of its own and hears from it how the start goes, over a socket pair.

Tied, the started process drains itself as soon as the starter is gone, be it by kill -9.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keelman.cli.exits import StartFailed
from keelman.cli.machine.options import Options
from keelman.cli.machine.services import last_words
from keelman.cli.machine.system import System, running_system
from keelman.model.errors import Unavailable
from keelman.runtime.home import Home, writable


@dataclass(frozen=True, slots=True)
class Heard:
    """One message of the started process. `kind` is say, note, serving, ready or failed; `text` is for people."""

    kind: str
    text: str = ""
    code: int = 0


class Told:
    """The started process's side: a reporter that tells its starter."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)

    def say(self, text: str) -> None:
        """What is done or waited for now."""
        self._send(kind="say", text=text)

    def note(self, text: str) -> None:
        """What is to be known also when the start is over."""
        self._send(kind="note", text=text)

    def serving(self, system: System) -> None:
        """All services answer."""
        self._send(kind="serving", text=system.gateway)

    def ready(self, system: System) -> None:
        """Everything asked for runs."""
        self._send(kind="ready", text=system.gateway)

    def failed(self, text: str, code: int) -> None:
        """The start failed; nothing is left of it."""
        self._send(kind="failed", text=text, code=code)

    async def starter_gone(self) -> None:
        """Returns when the starter closed its side or died."""
        self._socket.setblocking(False)
        while await asyncio.get_running_loop().sock_recv(self._socket, 64):
            pass

    def _send(self, **message: str | int) -> None:
        # A starter that left is no reason to stop: it may have been told all it wanted to know.
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(message).encode() + b"\n")


class Detached:
    """A started `keelman up`. Keep `link` open as long as a tied one is to live."""

    def __init__(self, home: Home, process: subprocess.Popen[bytes], link: socket.socket) -> None:
        self.home = home
        self.process = process
        self.link = link
        self._rest = b""

    async def ready(self, on_message: Callable[[Heard], None]) -> System:
        """Waits until it is ready. Raises the reason when it fails, with nothing left of it."""
        loop = asyncio.get_running_loop()
        self.link.setblocking(False)
        while True:
            received = await loop.sock_recv(self.link, 65536)
            if not received:
                words = last_words(self.home.log("up"))
                raise Unavailable(
                    f"`keelman up` ended with exit code {self.process.wait()} before it was ready: {words}"
                )
            *lines, self._rest = (self._rest + received).split(b"\n")
            for line in lines:
                heard = Heard(**json.loads(line))
                on_message(heard)
                if heard.kind == "failed":
                    self.process.wait()
                    raise StartFailed(heard.text, exit_code=heard.code)
                if heard.kind == "ready":
                    system = running_system(self.home)
                    if system is None:
                        raise Unavailable(
                            f"`keelman up` ended as soon as it was ready: {last_words(self.home.log('up'))}"
                        )
                    return system

    def stop(self) -> None:
        """Asks it to drain and waits for its end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def start_detached(options: Options, *, tied: bool) -> Detached:
    """Starts `keelman up` in a session of its own, its output appended to <home>/logs/up.log."""
    ours, theirs = socket.socketpair()
    log = options.home.log("up")
    writable("home", options.home.root, log.parent)
    words = [sys.executable, "-m", "keelman.cli", "up", *arguments_of(options)]
    words += ["--starter", str(theirs.fileno()), *(["--tied"] if tied else [])]
    with theirs, log.open("ab") as output:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=[theirs.fileno()],
        )
    return Detached(options.home, process, ours)


def arguments_of(options: Options) -> Sequence[str]:
    """The options as words of a command line."""
    words = ["--home", str(options.home.root)]
    for service, values in options.given.items():
        for key, value in values.items():
            words += ["--set", f"{service}.{key}={value}"]
    if options.free_ports:
        words.append("--free-ports")
    if not options.broker:
        words.append("--no-broker")
    return words
