"""Secrets are sealed at the start: which waits this causes, and how long they are."""

from __future__ import annotations

import base64
import itertools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from keelman.model.cluster import ExternalBrokers
from keelman.model.errors import FailedPrecondition
from keelman.state.clusters import broker_clusters
from keelman.state.database.database import open_database
from keelman.state.database.key_source import KeyCommand, KeySource
from keelman.state.secrets import sealed_rows
from support.state.stores import open_store


async def test_a_command_is_asked_before_the_transaction_and_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = []
    async with open_database(str(tmp_path / "state.db")) as database:
        pool: Any = database.engine.pool

        def read(source: KeySource) -> Sequence[bytes]:
            requests.append((pool.checkedout(), threading.current_thread() is threading.main_thread()))
            return (b"n" * 32,)

        monkeypatch.setattr(sealed_rows, "read_keys", read)
        for _ in range(2):  # the first start seals, the second opens
            sealer = await sealed_rows.open_sealer(database.engine, KeyCommand("vault read key"))
            assert sealer.key == b"n" * 32
    assert requests == [(0, False)] * 2


async def test_a_command_that_prints_a_new_key_alone_is_told_what_to_print(tmp_path: Path) -> None:
    first, second = [KeyCommand(f"echo {base64.b64encode(letter * 32).decode()}") for letter in (b"1", b"2")]
    async with open_database(str(tmp_path / "state.db")) as database:
        await sealed_rows.open_sealer(database.engine, first)
        with pytest.raises(
            FailedPrecondition, match=r"in a line after the new one, until a state service has logged"
        ) as wrong:
            await sealed_rows.open_sealer(database.engine, second)
        assert wrong.value.reason == "KEY_WRONG"
        both = KeyCommand(f"printf '%s\\n%s' {second.words[1]} {first.words[1]}")
        assert (await sealed_rows.open_sealer(database.engine, both)).key == b"1" * 32


async def test_a_transaction_that_seals_many_rows_never_stands_still_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL ends a transaction after 10 s without a statement."""
    monkeypatch.setattr(sealed_rows, "ROWS_AT_ONCE", 2)
    done: list[str] = []

    def change(spec: Any, *place: str) -> Any:
        done.append("row")
        return spec

    async with open_store(str(tmp_path / "state.db")) as store:
        async with store.write() as tx:
            for number in range(5):
                broker_clusters.create(tx, f"b{number}", ExternalBrokers("127.0.0.1:1"))
        async with store.database.engine.begin() as connection:

            @sa.event.listens_for(store.database.engine.sync_engine, "before_cursor_execute")
            def said(*_: Any) -> None:
                done.append("statement")

            await sealed_rows.reseal(connection, change)
    runs = [len(list(run)) for what, run in itertools.groupby(done) if what == "row"]
    assert runs == [2, 2, 1]
