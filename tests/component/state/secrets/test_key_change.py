"""The key that seals secrets changes while state services run: from a file on each host, and from a command."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from keelman.model.cluster import ExternalBrokers
from keelman.model.errors import FailedPrecondition
from keelman.state.clusters import broker_clusters
from keelman.state.database.key_source import KeyCommand, made_key, read_keys, replace_keys
from keelman.state.resources.store import ResourceStore
from keelman.state.secrets.key_change import HANDED_ON_SECONDS, KeyChange
from support.state.stores import open_store

pytestmark = pytest.mark.component
SPEC = ExternalBrokers("127.0.0.1:1", {"ssl.key.password": "pa55-word"})
NEW = b"n" * 32


@dataclass
class Clock:
    time: float = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def key(tmp_path: Path) -> Path:
    made_key(tmp_path / "secrets.key")
    return tmp_path / "secrets.key"


async def create(store: ResourceStore, name: str) -> None:
    async with store.write() as tx:
        broker_clusters.create(tx, name, SPEC)


async def sealed(store: ResourceStore) -> list[str]:
    async with store.database.engine.connect() as connection:
        rows = await connection.execute(
            sa.text("SELECT payload FROM resource WHERE noun = 'broker_cluster' ORDER BY name")
        )
        return [str(spec) for (spec,) in rows.all()]


async def test_each_state_service_takes_the_new_key_and_has_it_in_its_own_file(url: str, key: Path) -> None:
    if "://" not in url:
        pytest.skip("an SQLite file has one state service")
    copy = key.with_name("copy.key")
    shutil.copy(key, copy)
    old = read_keys(key)[0]
    async with open_store(url, key_file=key) as store, open_store(url, key_file=copy) as two:
        changes = [KeyChange(store.database, key), KeyChange(two.database, copy)]
        await create(store, "a")
        for change in changes:
            await change.look()
        before = await sealed(store)
        replace_keys(key, [NEW, old])
        await changes[0].look()
        assert await sealed(store) != before
        await create(two, "b")  # before the service has looked
        await store.catch_up()
        assert (read_keys(key), read_keys(copy)) == ((NEW, old), (old,))
        await changes[1].look()
        assert read_keys(copy) == (NEW,)
        await changes[0].look()
        assert read_keys(key) == (NEW, old), "the writer of the new file removes the former one"
        assert store.snapshot.broker_cluster("b").spec == two.snapshot.broker_cluster("a").spec == SPEC
    replace_keys(key, [old])
    async with open_store(url, key_file=key) as late:  # of a host that was down meanwhile
        assert late.snapshot.broker_cluster("b").spec == SPEC
        await KeyChange(late.database, key).look()
        assert read_keys(key) == (NEW,)
        clock = late.database.clock
        late.database.clock = lambda: clock() + timedelta(seconds=HANDED_ON_SECONDS + 1)
        await KeyChange(late.database, key).forget()
    replace_keys(key, [old])
    with pytest.raises(FailedPrecondition, match=r"secrets\.key' is not the key"):
        async with open_store(url, key_file=key):
            pass


async def test_a_file_with_another_key_alone_is_not_followed(url: str, key: Path) -> None:
    old = read_keys(key)[0]
    async with open_store(url, key_file=key) as store:
        await create(store, "a")
        change, before = KeyChange(store.database, key), await sealed(store)
        with capture_logs() as logs:
            for keys in ([NEW], []):
                replace_keys(key, keys)
                for _ in range(2):
                    await change.look()
            key.unlink()
            await change.look()
        assert [line["event"] for line in logs] == ["key_not_used", "key_not_read", "key_not_read"]
        assert await sealed(store) == before
        made_key(key)
        replace_keys(key, [NEW, old])
        await change.look()
        replace_keys(key, [old, NEW])
        await change.look()
        replace_keys(key, [old])
    async with open_store(url, key_file=key) as store:
        assert store.snapshot.broker_cluster("a").spec == SPEC, "back again"


async def test_what_a_command_prints_is_followed(url: str, key: Path) -> None:
    command, clock = KeyCommand(f"cat {key}"), Clock()
    async with open_store(url, key_file=command) as store:
        change, old = KeyChange(store.database, command, clock=clock), read_keys(key)[0]
        await create(store, "a")
        before = await sealed(store)
        replace_keys(key, [NEW])
        await change.look()
        assert await sealed(store) == before, "it is called each minute"
        clock.time += 60
        await change.look()
        assert await sealed(store) != before
        await create(store, "b")
        replace_keys(key, [old])
        clock.time += 60
        with capture_logs() as logs:
            await change.look()
        assert [line["event"] for line in logs] == ["key_is_former"]
        replace_keys(key, [NEW])
    async with open_store(url, key_file=command) as store:
        assert [store.snapshot.broker_cluster(name).spec for name in "ab"] == [SPEC, SPEC]
