"""Secrets are sealed at the start: what others wait for meanwhile, and for how long."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from keelman.state.database.database import open_database
from keelman.state.secrets import sealed_rows
from keelman.state.secrets.key_source import KeyCommand, KeySource


async def test_a_command_is_asked_before_the_transaction_and_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    async with open_database(str(tmp_path / "state.db")) as database:
        pool: Any = database.engine.pool

        def read(source: KeySource) -> Sequence[bytes]:
            asked.append((pool.checkedout(), threading.current_thread() is threading.main_thread()))
            return (b"n" * 32,)

        monkeypatch.setattr(sealed_rows, "read_keys", read)
        for _ in range(2):  # the first start seals, the second opens
            sealer = await sealed_rows.open_sealer(database.engine, KeyCommand("vault read key"))
            assert sealer.key == b"n" * 32
    assert asked == [(0, False)] * 2
