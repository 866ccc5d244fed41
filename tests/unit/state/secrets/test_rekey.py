"""`keelman state rekey` from its command line."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path

import pytest

from keelman.model.cluster import ExternalBrokers
from keelman.model.errors import Unavailable
from keelman.state.clusters import broker_clusters
from keelman.state.database.key_source import read_keys
from keelman.state.main import main
from keelman.state.secrets import rekey
from keelman.state.secrets.key_change import KeyChange
from support.eventually import eventually
from support.state.stores import open_store

SPEC = ExternalBrokers("127.0.0.1:1", {"ssl.key.password": "pa55-word"})


def test_a_new_key_takes_the_old_ones_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database, key = tmp_path / "state" / "state.db", tmp_path / "state" / "secrets.key"

    async def make() -> None:
        async with open_store(str(database)) as store, store.write() as tx:
            broker_clusters.create(tx, "far", SPEC)

    async def stored() -> object:
        async with open_store(str(database)) as store:
            return store.snapshot.broker_cluster("far").spec

    asyncio.run(make())
    before = key.read_bytes()
    assert main(["rekey", "--home", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("1 rows are sealed with the new key in ")
    assert key.read_bytes() != before
    assert asyncio.run(stored()) == SPEC
    assert main(["rekey", "--home", str(tmp_path), "--database", "mysql://x"]) == 2
    assert "state.database" in capsys.readouterr().err


def test_a_state_service_that_runs_follows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, key = tmp_path / "state" / "state.db", tmp_path / "state" / "secrets.key"

    async def follow(change: KeyChange) -> None:
        while True:
            await change.look()
            await asyncio.sleep(0.05)

    async def run() -> None:
        async with open_store(str(database)) as store:
            async with store.write() as tx:
                broker_clusters.create(tx, "far", SPEC)
            (before,) = read_keys(key)
            monkeypatch.setattr(rekey, "FOLLOW_SECONDS", 1.0)
            assert await asyncio.to_thread(main, ["rekey", "--home", str(tmp_path)]) == 1, "no replica follows"
            assert read_keys(key)[0] == before, "what comes behind it a service may have sealed with meanwhile"
            monkeypatch.setattr(rekey, "FOLLOW_SECONDS", 60.0)
            following = asyncio.ensure_future(follow(KeyChange(store.database, key)))
            assert await asyncio.to_thread(main, ["rekey", "--home", str(tmp_path)]) == 0
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
            assert (len(read_keys(key)), before in read_keys(key)) == (1, False)
            async with store.write() as tx:
                broker_clusters.create(tx, "next", SPEC)
        async with open_store(str(database)) as store:
            assert [store.snapshot.broker_cluster(name).spec for name in ("far", "next")] == [SPEC, SPEC]

    asyncio.run(run())
    printed = capsys.readouterr()
    assert "no state service has followed" in printed.err
    assert printed.out.splitlines()[-1].startswith("everything is sealed with the new key in ")
    assert main(["rekey", "--home", str(tmp_path), "--key-command", "vault read"]) == 2
    assert (
        "state.key_command: 'vault' is not legal: empty: have the command print another key" in capsys.readouterr().err
    )


async def test_a_state_service_that_follows_too_late_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database, key, is_over = str(tmp_path / "state.db"), tmp_path / "secrets.key", threading.Event()

    def deadline(url: str) -> str:
        is_over.wait(60.0)
        raise TimeoutError

    monkeypatch.setattr(rekey, "_proof_in", deadline)
    async with open_store(database, key_file=key) as store:
        (old,), change = read_keys(key), KeyChange(store.database, key)
        async with store.write():
            future = asyncio.ensure_future(rekey.rekey(database, key))
            await eventually(lambda: len(read_keys(key)) == 2)
            follows = asyncio.ensure_future(change.look())
            await eventually(lambda: len(change._keys) == 2, what="it has read the new key, and waits for its turn")
            is_over.set()
            with pytest.raises(Unavailable, match="no state service has followed"):
                await future
        await follows
        assert store.database.sealer is not None
        late = store.database.sealer.key
        assert (late != old, late in read_keys(key)) == (True, True), "a start opens its own sealed values"
        await change.look()
        assert store.database.sealer.key == old
