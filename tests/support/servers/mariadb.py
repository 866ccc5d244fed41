"""A MariaDB of the operating system's package with a fresh data folder, for tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keelman.runtime.processes.ports import free_ports

SERVER, INSTALL, CLIENT = (shutil.which(name) for name in ("mariadbd", "mariadb-install-db", "mariadb"))
MISSING = "" if SERVER and INSTALL and CLIENT else "MariaDB is not installed: mariadb-server-core, mariadb-client-core"
USER, PASSWORD = "keelman", "unused"
"""The user with all rights, from every host."""
START_SECONDS = 300.0
STATEMENT_SECONDS = 120
_SETTINGS = (
    "--server-id=1",
    "--skip-name-resolve",
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=16M",
    "--performance-schema=OFF",
    # A commit is with the operating system: it outlives the process, not the machine.
    "--innodb-flush-log-at-trx-commit=2",
)


class StatementFailed(Exception):
    """A statement failed, or its result is unknown: the server has refused it, or was gone."""


class MariadbServer:
    """One server whose log of changes can be followed; killed and started as often as a test likes."""

    def __init__(self) -> None:
        """Creates its data, starts nothing yet. Raises FileNotFoundError if MariaDB is not installed."""
        if MISSING:
            raise FileNotFoundError(MISSING)
        self._folder = Path(tempfile.mkdtemp(prefix="keelman-mariadb-"))
        self._socket, self._data = self._folder / "socket", self._folder / "data"
        self.port = free_ports(1)[0]
        user = ["--user=root"] if os.getuid() == 0 else []
        results = [str(INSTALL), "--no-defaults", f"--datadir={self._data}", "--skip-test-db", *user]
        subprocess.run([*results, "--auth-root-authentication-method=normal"], check=True, stdout=subprocess.DEVNULL)
        first = self._folder / "first.sql"
        first.write_text(
            f"CREATE OR REPLACE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON *.* TO {USER}@'%';\n"
        )
        self._command = [str(SERVER), "--no-defaults", f"--datadir={self._data}", f"--socket={self._socket}", *user]
        self._command += [f"--port={self.port}", "--bind-address=127.0.0.1", f"--init-file={first}", *_SETTINGS]
        self._server: subprocess.Popen[Any] | None = None

    def start(self) -> None:
        """Starts it and waits until it answers. Raises AssertionError with its log."""
        with (self._folder / "log").open("ab") as log:
            server = self._server = subprocess.Popen(self._command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if server.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((self._folder / "log").read_text())
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            self.do("SELECT 1")
        except StatementFailed:
            return False
        return True

    def do(self, statement: str, database: str = "") -> list[list[str]]:
        """The rows of a statement; of several the rows of all. Raises StatementFailed."""
        command = [str(CLIENT), "--no-defaults", f"--socket={self._socket}", "-uroot", "-NB", "-e", statement, database]
        done = subprocess.run(
            command[: None if database else -1], capture_output=True, text=True, timeout=STATEMENT_SECONDS, check=False
        )
        if done.returncode:
            raise StatementFailed(done.stderr.strip())
        return [line.split("\t") for line in done.stdout.splitlines()]

    def kill(self) -> None:
        """Ends it by kill -9."""
        assert self._server is not None, "not started"
        self._server.kill()
        self._server.wait(60)

    def close(self) -> None:
        """Ends it and removes its folder."""
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(signal.SIGTERM)
            try:
                self._server.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def running_mariadb() -> Iterator[MariadbServer]:
    """Yields a running server. Raises FileNotFoundError where MariaDB is not installed."""
    server = MariadbServer()
    try:
        server.start()
        yield server
    finally:
        server.close()
