"""The databases of the state service's tests: an SQLite file, or a PostgreSQL that the tests start once."""

import pytest

from keelman.testing.servers.postgresql import BINARIES, started_postgresql
from support.state.service import state_in_loop


@pytest.fixture(scope="session")
def postgresql():
    """A function that makes databases of a PostgreSQL."""
    if not BINARIES:
        pytest.skip("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/postgres")
    with started_postgresql() as database:
        yield database


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path) -> str:
    return str(tmp_path / "state.db") if request.param == "sqlite" else request.getfixturevalue("postgresql")()


@pytest.fixture
async def clients(tmp_path, url):
    """Of a state service with each of the databases."""
    async with state_in_loop(tmp_path, database=url, key_file=tmp_path / "secrets.key") as (made, _):
        yield made
