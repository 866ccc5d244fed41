"""The databases of the state service's tests: an SQLite file, or a PostgreSQL that the tests start once.

An S3 server, started once too.
"""

from collections.abc import AsyncIterator

import pytest

from support.servers.object_store import ObjectStore, object_store
from support.servers.postgresql import BINARIES, started_postgresql
from support.state.service import state_in_loop


@pytest.fixture(scope="session")
def postgresql():
    """A function that creates databases of a PostgreSQL."""
    if not BINARIES:
        pytest.skip("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/postgres")
    with started_postgresql() as database:
        yield database


@pytest.fixture(scope="session")
async def s3_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ObjectStore]:
    """An S3 server with a bucket `plugins`; each test uses keys of its own."""
    async with object_store(tmp_path_factory.mktemp("s3") / "store") as server:
        await server.create("plugins")
        yield server


@pytest.fixture
def s3(s3_server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """The S3 server, whose keys are in the environment of this process."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path) -> str:
    return str(tmp_path / "state.db") if request.param == "sqlite" else request.getfixturevalue("postgresql")()


@pytest.fixture
async def clients(tmp_path, url):
    """Clients of a state service with each of the databases."""
    async with state_in_loop(tmp_path, database=url, key_file=tmp_path / "secrets.key") as (state, _):
        yield state
