"""The errors of a process beside the worker, in the user's words."""

from __future__ import annotations

import pytest

from keelman.connect.errors import ConnectError
from keelman.connectors.file.sink import FileStreamSink
from keelman.connectors.plugins.host import error_from_json, error_to_json
from keelman.model.errors import Unavailable
from keelman.worker.errors import RestError
from keelman.worker.previews.side_process import SideProcess, asking


async def test_errors_name_what_was_asked_in_users_words() -> None:
    with pytest.raises(ConnectError, match=r"^the dead letters of orders: "):
        await SideProcess({}).ask(FileStreamSink, "dead_letters", "orders", {}, seconds=60)


async def test_what_passes_is_no_fault_of_who_asks() -> None:
    body = error_to_json(Unavailable("its server answered 503", reason="NO_TOKEN"))
    error = error_from_json(body, "the preview of orders")
    assert isinstance(error, Unavailable)
    assert (error.message, error.reason) == ("the preview of orders: its server answered 503", "NO_TOKEN")
    with pytest.raises(RestError, match=r"^the preview of orders: its server answered 503$") as raised:
        async with asking():
            raise error
    assert raised.value.status == 503
