"""Two state services of one database, whose key changes twice."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from keelman.model.cluster import ExternalBrokers
from keelman.state.clusters import broker_clusters
from keelman.state.database.database import Database
from keelman.state.database.key_source import KeyCommand, made_key, read_keys, replace_keys
from keelman.state.secrets.key_change import KeyChange
from support.state.stores import open_store

FIRST, SECOND = b"1" * 32, b"2" * 32


class Shared(Database):
    """One process of several on a database, as with PostgreSQL."""

    @property
    def is_sole(self) -> bool:
        """False: others have it too."""
        return False


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made_key(tmp_path / "secrets.key")
    return tmp_path / "secrets.key"


@pytest.fixture
async def both(tmp_path: Path, file: Path) -> AsyncIterator[tuple[Database, Database]]:
    async with open_store(str(tmp_path / "state.db"), key_file=file) as store:
        async with store.write() as tx:
            broker_clusters.create(tx, "far", ExternalBrokers("127.0.0.1:1", {"ssl.key.password": "pa55-word"}))
        database = store.database
        yield Shared(database.engine, database.sealer), Shared(database.engine, database.sealer)


async def look(change: KeyChange) -> None:
    """Looks as a state service does, which reads the database each second."""
    async with change.database.read():
        pass
    await change.look()


def key_of(database: Database) -> bytes:
    assert database.sealer is not None
    return database.sealer.key


async def test_a_second_change_by_another_is_not_taken_back_where_a_command_prints_the_first(
    both: tuple[Database, Database], file: Path
) -> None:
    command = KeyCommand(f"cat {file}")
    leader, follower = (KeyChange(database, command, command_seconds=0) for database in both)
    replace_keys(file, [FIRST])
    await look(leader)
    await look(follower)
    replace_keys(file, [SECOND])
    await look(follower)
    leader.command_seconds = 60.0  # it has not called the command again
    with capture_logs() as logs:
        for _ in range(2):
            await look(leader)
            await look(follower)
    assert [key_of(database) for database in both] == [SECOND, SECOND]
    assert [line["event"] for line in logs] == ["key_is_former"]


async def test_a_second_change_by_another_comes_into_the_file_of_who_made_the_first(
    both: tuple[Database, Database], file: Path
) -> None:
    copy = file.with_name("copy.key")
    shutil.copy(file, copy)
    leader, follower = (KeyChange(database, own) for database, own in zip(both, (file, copy), strict=True))
    replace_keys(file, [FIRST, *read_keys(file)])
    await look(leader)
    replace_keys(file, [FIRST])
    await look(follower)
    assert read_keys(copy) == (FIRST,)
    replace_keys(copy, [SECOND, FIRST])
    await look(follower)
    await look(leader)
    assert read_keys(file) == (SECOND,)
    assert [key_of(database) for database in both] == [SECOND, SECOND]


async def test_a_change_that_failed_is_tried_again(
    both: tuple[Database, Database], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_change, old = KeyChange(both[0], KeyCommand(f"cat {file}"), command_seconds=0), read_keys(file)[0]
    replace_keys(file, [FIRST])
    with monkeypatch.context() as patched:
        patched.setattr("keelman.state.secrets.key_change.write_proof", None)
        with pytest.raises(TypeError):
            await look(key_change)
    assert key_of(both[0]) == old
    await look(key_change)
    assert key_of(both[0]) == FIRST
