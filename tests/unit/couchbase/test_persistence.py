"""Which side is at fault when a node does not know the history of events that are not yet persisted."""

import asyncio
from typing import cast

import pytest

from keelman.couchbase.cluster_map import NodeAddress
from keelman.couchbase.connection import Connection
from keelman.couchbase.frames import RESPONSE, Frame, Opcode, ResponseStatus
from keelman.couchbase.persistence import HeldVbuckets
from keelman.couchbase.vbucket import Event, HistoryPlace

OLD, NEW = NodeAddress("old", 11210), NodeAddress("new", 11210)


class Forgetful:
    """A node that knows no history."""

    def __init__(self) -> None:
        self.why = ""
        self.asked = asyncio.Event()

    async def request(self, opcode: int, **fields: object) -> Frame:
        self.asked.set()
        return Frame(RESPONSE, opcode, 0, ResponseStatus.KEY_NOT_FOUND, 0, 0, b"", b"", b"")

    def leave(self, reason: str) -> None:
        self.why = reason


@pytest.mark.parametrize("sender", [OLD, NEW])
async def test_only_the_node_that_sent_events_is_left_for_not_knowing_their_history(sender: NodeAddress) -> None:
    nodes = {OLD: Forgetful(), NEW: Forgetful()}

    async def connect(address: NodeAddress) -> Connection:
        return cast("Connection", nodes[address])

    held = HeldVbuckets(0.1, lambda _: [NEW, OLD], lambda _: sender, connect, lambda events: None)
    held.add(Event(Opcode.MUTATION, 3, 1, HistoryPlace(1, 1, 1), None, b"key", b"", 0, 0, 0, 0, 0, 0, 40))
    for node in nodes.values():
        await node.asked.wait()
    await asyncio.sleep(0)
    message = "it does not know the history of vbucket 3 that it has sent"
    assert {address: node.why for address, node in nodes.items()} == {OLD: "", NEW: "", sender: message}
    held.close()
