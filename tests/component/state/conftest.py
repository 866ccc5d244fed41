"""The databases of the state service's tests: an SQLite file, or a PostgreSQL that the tests start once."""

import os
import pwd
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from keelman.runtime.processes.ports import free_ports

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


def postgres_user() -> str | None:
    """PostgreSQL refuses to run as root: then the package's own user runs it."""
    return "postgres" if os.getuid() == 0 else None


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory):
    """A PostgreSQL of the operating system's package with a fresh cluster; yields a function that makes databases."""
    if not BINARIES:
        pytest.skip("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/postgres")
    binaries, user = BINARIES[-1].parent, postgres_user()
    # Not under pytest's folder: that is closed to the other user.
    folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/keelman-pg.XXXXXX"], text=True).strip())
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    as_user = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}
    port = free_ports(1)[0]
    data = folder / "data"
    command = [
        binaries / "initdb",
        "-D",
        data,
        "-U",
        "keelman",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-sync",
        "--no-locale",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, **as_user)
    flags = ["-D", data, "-k", folder, "-h", "127.0.0.1", "-p", str(port), "-c", "fsync=off"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([binaries / "postgres", *flags], cwd=folder, stdout=log, stderr=log, **as_user)
    url = f"postgresql+psycopg://keelman@127.0.0.1:{port}/postgres"
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    number = iter(range(1000))

    def database() -> str:
        name = f"state{next(number)}"
        with engine.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
        return f"postgresql://keelman@127.0.0.1:{port}/{name}"

    try:
        ready = [binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port), "-d", "postgres"]
        deadline = time.monotonic() + 60
        while subprocess.run(ready, check=False).returncode:
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
        yield database
    finally:
        engine.dispose()
        server.send_signal(signal.SIGINT)
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path) -> str:
    return str(tmp_path / "state.db") if request.param == "sqlite" else request.getfixturevalue("postgresql")()
