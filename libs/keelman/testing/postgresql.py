"""A PostgreSQL of the operating system's package with a fresh cluster, for tests and benchmarks."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from keelman.runtime.processes.ports import free_ports

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


@contextlib.contextmanager
def started_postgresql(*, is_safe: bool = False) -> Iterator[Callable[[], str]]:
    """Yields a function that makes databases and returns their URLs. `is_safe`: it writes to the disk as it would in
    earnest.

    Raises FileNotFoundError where PostgreSQL is not installed.
    """
    if not BINARIES:
        raise FileNotFoundError("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/postgres")
    binaries = BINARIES[-1].parent
    # PostgreSQL refuses to run as root: then the package's own user runs it, in a folder that is open to it.
    user = pwd.getpwnam("postgres") if os.getuid() == 0 else None
    folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/keelman-pg.XXXXXX"], text=True).strip())
    if user is not None:
        os.chown(folder, user.pw_uid, -1)
    as_user: dict[str, Any] = {"user": user.pw_name, "group": user.pw_gid, "extra_groups": []} if user else {}
    port, data = free_ports(1)[0], folder / "data"
    flags = ["-D", str(data), "-U", "keelman", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-locale"]
    subprocess.run([binaries / "initdb", *flags], check=True, stdout=subprocess.DEVNULL, cwd=folder, **as_user)
    flags = ["-D", str(data), "-k", str(folder), "-h", "127.0.0.1", "-p", str(port)]
    flags += [] if is_safe else ["-c", "fsync=off"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([binaries / "postgres", *flags], cwd=folder, stdout=log, stderr=log, **as_user)
    engine = sa.create_engine(f"postgresql+psycopg://keelman@127.0.0.1:{port}/postgres", isolation_level="AUTOCOMMIT")
    number = iter(range(1000))

    def database() -> str:
        name = f"state{next(number)}"
        with engine.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
        return f"postgresql://keelman@127.0.0.1:{port}/{name}"

    try:
        _wait(
            [str(binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port), "-d", "postgres"], server, folder
        )
        yield database
    finally:
        engine.dispose()
        server.send_signal(signal.SIGINT)
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(ready: list[str], server: subprocess.Popen[Any], folder: Path) -> None:
    deadline = time.monotonic() + 60
    while subprocess.run(ready, check=False).returncode:
        if server.poll() is not None or time.monotonic() > deadline:
            raise AssertionError((folder / "log").read_text())
        time.sleep(0.05)
