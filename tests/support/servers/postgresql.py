"""A PostgreSQL of the operating system's package with a fresh cluster, for tests and benchmarks."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa

from keelman.runtime.processes.ports import free_ports

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
LOGICAL: Mapping[str, str] = {"wal_level": "logical", "max_wal_senders": "16", "max_replication_slots": "16"}
"""Settings with which a connector can follow changes."""
USER = "keelman"


class PostgresqlServer:
    """One server with a folder of its own; killed and started as often as a test likes."""

    def __init__(self, settings: Mapping[str, str], host: str = "127.0.0.1") -> None:
        """Creates the cluster, starts nothing yet.

        It admits all clients that reach `host`, an address of this machine. Raises FileNotFoundError if
        PostgreSQL is not installed.
        """
        if not BINARIES:
            raise FileNotFoundError("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/postgres")
        self._binaries = BINARIES[-1].parent
        # PostgreSQL refuses to run as root: then the package's own user runs it, in a folder that is open to it.
        user = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        self._folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/keelman-pg.XXXXXX"], text=True).strip())
        if user is not None:
            os.chown(self._folder, user.pw_uid, -1)
        named: dict[str, Any] = {"user": user.pw_name, "group": user.pw_gid, "extra_groups": []} if user else {}
        self._options: dict[str, Any] = {"cwd": self._folder, **named}
        self._data = self._folder / "data"
        flags = ["-D", str(self._data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync", "--no-locale"]
        subprocess.run([self._binaries / "initdb", *flags], check=True, stdout=subprocess.DEVNULL, **self._options)
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all all trust\n")
        self._host, self.port = host, free_ports(1)[0]
        self._flags = ["-D", str(self._data), "-k", str(self._folder), "-h", host, "-p", str(self.port)]
        for key, value in settings.items():
            self._flags += ["-c", f"{key}={value}"]
        self._server: subprocess.Popen[Any] | None = None
        self._number = iter(range(1000))

    def start(self) -> None:
        """Starts it and waits until it answers. Raises AssertionError with its log."""
        with (self._folder / "log").open("ab") as log:
            command = [str(self._binaries / "postgres"), *self._flags]
            server = self._server = subprocess.Popen(command, stdout=log, stderr=log, **self._options)
        ready = [str(self._binaries / "pg_isready"), "-q", "-h", self._host, "-p", str(self.port), "-d", "postgres"]
        deadline = time.monotonic() + 300
        while subprocess.run(ready, check=False).returncode:
            if server.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((self._folder / "log").read_text())
            time.sleep(0.05)

    def kill(self) -> None:
        """Ends all its processes at once, as kill -9 does."""
        assert self._server is not None, "not started"
        family = [psutil.Process(self._server.pid), *psutil.Process(self._server.pid).children(recursive=True)]
        for item in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                item.kill()
        self._server.wait(60)
        psutil.wait_procs(family[1:], timeout=30)

    def close(self) -> None:
        """Ends it and removes its folder."""
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait(60)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def folder(self) -> Path:
        """The folder of all its files."""
        return self._folder

    def url(self, database: str) -> str:
        """The URL of a database, for clients of libpq."""
        return f"postgresql://{USER}@{self._host}:{self.port}/{database}"

    def database(self) -> str:
        """Creates a database and returns its URL."""
        name = f"state{next(self._number)}"
        address = self.url("postgres").replace("postgresql:", "postgresql+psycopg:")
        engine = sa.create_engine(address, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                connection.execute(sa.text(f"CREATE DATABASE {name}"))
        finally:
            engine.dispose()
        return self.url(name)


@contextlib.contextmanager
def running_postgresql(
    settings: Mapping[str, str] = LOGICAL, *, is_safe: bool = False, host: str = "127.0.0.1"
) -> Iterator[PostgresqlServer]:
    """Yields a running server at an address of this machine. `is_safe`: it syncs its writes to the disk.

    Raises FileNotFoundError if PostgreSQL is not installed.
    """
    server = PostgresqlServer(settings if is_safe else {**settings, "fsync": "off"}, host)
    try:
        server.start()
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def started_postgresql(*, is_safe: bool = False) -> Iterator[Callable[[], str]]:
    """Yields a function that creates databases and returns their URLs. `is_safe`: it syncs its writes to the disk.

    Raises FileNotFoundError if PostgreSQL is not installed.
    """
    with running_postgresql({}, is_safe=is_safe) as server:
        yield server.database
