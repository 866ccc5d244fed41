"""`keelman state rekey` from its command line."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from keelman.model.cluster import ExternalBrokers
from keelman.state.main import main
from keelman.state.nouns import broker_cluster
from keelman.state.store import open_store

SPEC = ExternalBrokers("127.0.0.1:1", {"ssl.key.password": "pa55-word"})


def test_a_new_key_takes_the_old_ones_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database, key = tmp_path / "state" / "state.db", tmp_path / "state" / "secrets.key"

    async def make() -> None:
        async with open_store(str(database)) as store, store.write() as tx:
            broker_cluster.create(tx, "far", SPEC)

    async def stored() -> object:
        async with open_store(str(database)) as store:
            assert await asyncio.to_thread(main, ["rekey", "--home", str(tmp_path)]) == 1, "a state service runs"
            return store.snapshot.broker_cluster("far").spec

    asyncio.run(make())
    before = key.read_bytes()
    assert main(["rekey", "--home", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("1 rows are sealed with the new key in ")
    assert key.read_bytes() != before
    assert asyncio.run(stored()) == SPEC
    assert "is in use by another state service" in capsys.readouterr().err
    assert main(["rekey", "--home", str(tmp_path), "--database", "mysql://x"]) == 2
    assert "state.database" in capsys.readouterr().err
