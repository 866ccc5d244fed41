"""A database of the version with a table for each noun starts with all that it had, or is refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from keelman.model.errors import FailedPrecondition
from keelman.model.node import NodeSpec
from keelman.state.database.migrations.migrate import NEWEST, USED_LOCK, VERSION_TABLE
from keelman.state.nouns import node
from keelman.state.nouns.registry import NOUNS
from support.state.homes import FORMER, kept_home
from support.state.stores import open_store

pytestmark = pytest.mark.component
CAME_LATER = {"spark_cluster"}
"""Nouns that the kept home does not have yet."""
VERSION = sa.text(f"SELECT version_num FROM {VERSION_TABLE}")


def engine_of(url: str) -> AsyncEngine:
    driver = "postgresql+psycopg" + url.removeprefix("postgresql") if "://" in url else f"sqlite+aiosqlite:///{url}"
    return create_async_engine(driver)


def recorded_part(present: Any, recorded: Any) -> Any:
    """Returns a value without the fields that resources have got since it was recorded."""
    if isinstance(present, dict) and isinstance(recorded, dict):
        return {key: recorded_part(value, recorded[key]) for key, value in present.items() if key in recorded}
    return present


async def test_a_kept_home_has_all_that_it_had(url: str, tmp_path: Path) -> None:
    key_file = tmp_path / "secrets.key"
    stored_kept_home = kept_home(url, key_file)
    async with open_store(url, key_file=key_file) as store:
        trees = [
            json.loads(json.dumps(noun.to_row(resource)))
            for noun in NOUNS.values()
            for _, resource in sorted(store.snapshot.resources(noun.name).items())
        ]
        assert [recorded_part(*pair) for pair in zip(trees, stored_kept_home["resources"], strict=True)] == (
            stored_kept_home["resources"]
        )
        assert {tree["noun"] for tree in trees} == NOUNS.keys() - CAME_LATER
        assert store.revision == stored_kept_home["revision"]
        async with store.database.engine.connect() as connection:
            for table, rows in (stored_kept_home["counts"] | {"lease": 1}).items():
                assert await connection.scalar(sa.text(f"SELECT COUNT(*) FROM {table}")) == rows, table
            assert await connection.scalar(VERSION) == NEWEST
            tables = await connection.run_sync(lambda value: sa.inspect(value).get_table_names())
            assert not set(tables) & NOUNS.keys()
        async with store.write() as tx:
            node.create(tx, "n3", NodeSpec())
    async with open_store(url, key_file=key_file) as store:
        assert sorted(store.snapshot.nodes) == ["n1", "n2", "n3"]


async def test_an_earlier_version_is_refused(url: str, tmp_path: Path) -> None:
    kept_home(url, tmp_path / "secrets.key")
    engine = engine_of(url)
    async with engine.begin() as connection:
        await connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '0023'"))
    with pytest.raises(FailedPrecondition, match="have version 0023, this keelman brings over version 0024"):
        async with open_store(url, key_file=tmp_path / "secrets.key"):
            pass
    await engine.dispose()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
async def test_tables_in_use_stay_as_they_are(url: str, tmp_path: Path) -> None:
    key_file = tmp_path / "secrets.key"
    kept_home(url, key_file)
    engine = engine_of(url)
    async with engine.connect() as used:
        await used.execute(sa.text(f"SELECT pg_advisory_lock_shared({USED_LOCK})"))
        with pytest.raises(FailedPrecondition, match="state services of an earlier keelman use this database") as error:
            async with open_store(url, key_file=key_file):
                pass
        assert error.value.reason == "IN_USE"
        assert await used.scalar(VERSION) == FORMER
        await used.execute(sa.text(f"SELECT pg_advisory_unlock_shared({USED_LOCK})"))
    await engine.dispose()
    async with open_store(url, key_file=key_file) as store:
        assert "demo" in store.snapshot.worker_clusters
