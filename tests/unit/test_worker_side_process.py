"""What a process beside the worker says of its question."""

from __future__ import annotations

import pytest

from keelman.connect.errors import ConnectError
from keelman.connectors.file_sink import FileStreamSink
from keelman.worker.beside.side_process import SideProcess


async def test_errors_name_what_was_asked_in_users_words() -> None:
    with pytest.raises(ConnectError, match=r"^the dead letters of orders: "):
        await SideProcess({}).ask(FileStreamSink, "dead_letters", "orders", {}, seconds=60)
