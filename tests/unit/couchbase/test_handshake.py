"""How a connection names itself to a server."""

import json
from typing import Any

import pytest

from keelman.couchbase.frames import RESPONSE, Frame, Opcode
from keelman.couchbase.handshake import MAX_NAME_BYTES, log_in, open_dcp
from keelman.couchbase.seeds import BucketAccess, Seed


class Server:
    """Answers every request with success."""

    where, id = "one:11210", "03FB3105B88BE224/B00B72E2F48FE457"

    def __init__(self) -> None:
        self.keys: dict[int, bytes] = {}

    async def request(self, opcode: int, *, key: bytes = b"", **_: Any) -> Frame:
        self.keys[opcode] = key
        return Frame(RESPONSE, opcode, 0, 0, 0, 0, b"", b"", b"")


@pytest.mark.parametrize("connector", ["orders", "Bestellungen für Köln " * 20])
async def test_a_connection_has_one_name_that_servers_take(connector: str) -> None:
    server, access = Server(), BucketAccess([Seed("one")], "travel", agent=f"keelman/1 ({connector}; task-0)")
    await log_in(server, access)
    await open_dcp(server, access, [], 1)
    name, hello = server.keys[Opcode.DCP_OPEN], server.keys[Opcode.HELLO]
    assert hello == b"{%b}" % name
    tree = json.loads(hello)
    assert tree["i"] == server.id
    assert access.agent.startswith(tree["a"])
    assert len(name) <= MAX_NAME_BYTES
    assert name.isascii()
