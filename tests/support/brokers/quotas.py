"""Sets client quotas of a broker under test."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from io import BytesIO

from keelman.kafka.clients import low_level_client
from keelman.kafka.wire.fields import NO_TAGS, Fields, compact
from keelman.kafka.wire.requests import WireRequest


class _Altered:
    """Answer to AlterClientQuotas 1."""

    def __init__(self, error_code: int) -> None:
        self.error_code = error_code

    @classmethod
    def decode(cls, data: BytesIO) -> _Altered:
        """The first entry's error code."""
        fields = Fields(data.read())
        fields.int32()  # throttle time
        return cls(fields.int16() if fields.count() else 0)


@dataclass(frozen=True)
class _Alter(WireRequest, key=49, version=1, answer=_Altered):
    """AlterClientQuotas 1: one client id, one quota."""

    client_id: str
    key: str
    value: float

    def encode(self) -> bytes:
        entity = b"\2" + compact("client-id") + compact(self.client_id) + NO_TAGS
        change = b"\2" + compact(self.key) + struct.pack(">d?", self.value, False) + NO_TAGS
        return b"\2" + entity + change + NO_TAGS + b"\0" + NO_TAGS


async def limit_producer(bootstrap: str, client_id: str, bytes_per_second: float) -> None:
    """Sets `producer_byte_rate` of one client id: all producers with this client id share it.

    A broker counts over eleven samples of a second, so a burst of some ten seconds' worth passes at full speed.
    """
    async with low_level_client({"bootstrap.servers": bootstrap}, client_id="admin", timeout_ms=60_000) as client:
        answer = await client.send(
            client.get_random_node(), _Alter(client_id, "producer_byte_rate", float(bytes_per_second))
        )
        assert answer.error_code == 0, f"the quota of {client_id} was refused: {answer.error_code}"
