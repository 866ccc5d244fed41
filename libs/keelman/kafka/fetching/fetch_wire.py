"""Encodes and decodes Fetch 11: the version with leader epochs and racks that all brokers since 2.3 support.

Source: https://github.com/apache/kafka/blob/4.3/clients/src/main/resources/common/message/FetchRequest.json
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from io import BytesIO
from typing import NamedTuple

from keelman.kafka.fetching.settings import FetchSettings
from keelman.kafka.leaders.metadata import Part
from keelman.kafka.wire.requests import AnswerHeader, RequestHeader, WireRequest

_INT32 = struct.Struct(">i")
_REQUEST = struct.Struct(">iiiibiii")
_WANTED = struct.Struct(">iiqqi")
_ANSWER = struct.Struct(">ihii")
_PART = struct.Struct(">ihqqqi")
_ABORTED = struct.Struct(">qq")
_DATA = struct.Struct(">ii")
CONSUMER, UNKNOWN = -1, -1
"""The replica id of a client, which is no replica; and the log start offset, which a client does not know."""


class FetchedPart(NamedTuple):
    """A broker's answer for one partition. `near` is the preferred replica for the next fetch, -1 for none."""

    part: Part
    code: int
    high_watermark: int
    last_stable_offset: int
    aborted: list[tuple[int, int]]
    near: int
    data: bytes | memoryview


class FetchAnswer(NamedTuple):
    """Answer to Fetch."""

    error_code: int
    session_id: int
    parts: list[FetchedPart]

    @classmethod
    def decode(cls, data: BytesIO) -> FetchAnswer:
        """Decodes the answer after its header. Record data is not copied."""
        view, at = data.getbuffer(), data.tell()
        _throttle, code, session, topics = _ANSWER.unpack_from(view, at)
        at += _ANSWER.size
        parts = list[FetchedPart]()
        for _ in range(topics):
            size = int.from_bytes(view[at : at + 2])
            at += 2
            topic = str(view[at : at + size], "utf-8")
            (count,) = _INT32.unpack_from(view, at + size)
            at += size + 4
            for _ in range(count):
                number, error, high, stable, _start, aborted = _PART.unpack_from(view, at)
                at += _PART.size
                ended = at + max(0, aborted) * _ABORTED.size
                begun = list(_ABORTED.iter_unpack(view[at:ended])) if aborted > 0 else []
                near, length = _DATA.unpack_from(view, ended)
                at = ended + _DATA.size
                some = view[at : at + length] if length > 0 else b""
                parts.append(FetchedPart((topic, number), error, high, stable, begun, near, some))
                at += max(0, length)
        return cls(code, session, parts)


@dataclass(frozen=True, slots=True)
class Fetch11(WireRequest, key=1, version=11, answer=FetchAnswer):
    """Fetches from these positions, each an offset and the leader epoch to be checked."""

    settings: FetchSettings
    _: KW_ONLY
    isolation: int
    wait_ms: int
    session: tuple[int, int]
    positions: Mapping[Part, tuple[int, int]]
    forgotten: Iterable[Part]

    def build_request_header(self, correlation_id: int, client_id: str) -> RequestHeader:
        """Returns header version 1."""
        name = client_id.encode()
        return RequestHeader(struct.pack(">hhih", self.API_KEY, self.API_VERSION, correlation_id, len(name)) + name)

    def parse_response_header(self, data: BytesIO) -> AnswerHeader:
        """Reads header version 0."""
        return AnswerHeader(int(_INT32.unpack(data.read(4))[0]))

    def encode(self) -> bytes:
        """Encodes the request without its header."""
        settings = self.settings
        by_topic = dict[str, list[bytes]]()
        for (topic, number), (at, epoch) in self.positions.items():
            packed = _WANTED.pack(number, epoch, at, UNKNOWN, settings.partition_bytes)
            by_topic.setdefault(topic, []).append(packed)
        forgotten = dict[str, list[bytes]]()
        for topic, number in self.forgotten:
            forgotten.setdefault(topic, []).append(_INT32.pack(number))
        limits = self.wait_ms, settings.min_bytes, settings.answer_bytes, self.isolation
        rack = settings.rack.encode()
        return b"".join(
            (
                _REQUEST.pack(CONSUMER, *limits, *self.session, len(by_topic)),
                *_by_topic(by_topic),
                _INT32.pack(len(forgotten)),
                *_by_topic(forgotten),
                len(rack).to_bytes(2),
                rack,
            )
        )


def _by_topic(parts: Mapping[str, list[bytes]]) -> Iterable[bytes]:
    for topic, some in parts.items():
        name = topic.encode()
        yield len(name).to_bytes(2)
        yield name
        yield _INT32.pack(len(some))
        yield from some
