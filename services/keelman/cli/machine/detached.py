"""Starts `keelman up` as a separate process, which reports the progress of its start over a socket pair.

A tied process drains itself as soon as its starter is gone, even by kill -9.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from keelman.cli.exits import StartFailed
from keelman.cli.machine.options import UpOptions
from keelman.cli.machine.services import last_words, secret_settings
from keelman.cli.machine.up import Stage
from keelman.model.errors import Unavailable
from keelman.runtime.home import Home, writable
from keelman.runtime.processes.ports import variable


@dataclass(frozen=True, slots=True)
class Message:
    """The started process's message about its start; `text` is for people, `code` the exit code of a failure."""

    stage: Stage
    text: str = ""
    code: int = 0


class Starter:
    """The started process's side: reports to its starter."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)

    def report(self, stage: Stage, text: str = "", code: int = 0) -> None:
        """Sends a message. Ignores a starter that has left: it may have no interest in more."""
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(asdict(Message(stage, text, code))).encode() + b"\n")

    async def wait_gone(self) -> None:
        """Returns when the starter has closed its side or died."""
        self._socket.setblocking(False)
        while await asyncio.get_running_loop().sock_recv(self._socket, 64):
            pass


class Detached:
    """A started `keelman up`. Keep `link` open as long as a tied process has to live."""

    def __init__(self, home: Home, process: subprocess.Popen[bytes], link: socket.socket) -> None:
        self.home = home
        self.process = process
        self.link = link
        self._rest = b""

    async def ready(self, on_message: Callable[[Message], None]) -> None:
        """Waits until it is ready. Raises the reason of a failure, after which no process is left."""
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
                message = Message(**json.loads(line))
                on_message(message)
                if message.stage == "failed":
                    self.process.wait()
                    raise StartFailed(message.text, exit_code=message.code)
                if message.stage == "ready":
                    return

    def stop(self) -> None:
        """Signals it to drain, and waits for its end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def start_detached(options: UpOptions, *, tied: bool) -> Detached:
    """Starts `keelman up` in its own session, with its output appended to <home>/logs/up.log."""
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
            env={**os.environ, **environment_of(options)},
        )
    return Detached(options.home, process, ours)


def arguments_of(options: UpOptions) -> Sequence[str]:
    """Returns the options as words of a command line, except secret settings: any user may list command lines."""
    words = ["--home", str(options.home.root)]
    for service, values in options.given.items():
        for key, value in values.items():
            words += [] if key in secret_settings(service) else ["--set", f"{service}.{key}={value}"]
    if options.free_ports:
        words.append("--free-ports")
    if not options.broker:
        words.append("--no-broker")
    return words


def environment_of(options: UpOptions) -> dict[str, str]:
    """Returns the secret settings among the options, as environment variables."""
    values = ((s, k, v) for s, values in options.given.items() for k, v in values.items() if k in secret_settings(s))
    return {variable(f"{service}.{key}"): value for service, key, value in values}
