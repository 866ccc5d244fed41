"""The bytes of group metadata and assignments: Connect's `sessioned` layout with our own fields after it. Pure."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from keelman.model.errors import InvalidArgument
from keelman.model.work import MemberAssignment, Work

PROTOCOL_TYPE = "connect"
PROTOCOL = "keelman"
VERSION = 2
OWN_VERSION = 1
CONFIG_MISMATCH = 1
# Longer works are packed: a broker keeps all members' metadata and assignments in one record, of 1 MB unless set.
PLAIN_BYTES = 2048
PACKED = b"keelman\x01"
MAX_BYTES = 64 << 20
MAX_UNFIT_BYTES = 1000
_INT8, _INT16, _INT32, _INT64 = (struct.Struct(form) for form in (">b", ">h", ">i", ">q"))


@dataclass(frozen=True, slots=True)
class OwnFields:
    """The fields that our workers add to Connect's. `weights` are of tasks: see keelman.worker.tasks.measured.

    `unfit` is the reason why the member takes no tasks now, empty while it takes them.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    load: int = 0
    leaving: bool = False
    weights: Mapping[Work, int] = field(default_factory=dict)
    unfit: str = ""


@dataclass(frozen=True, slots=True)
class Metadata:
    """One member's report to the leader. `allocation` is everything that it runs now; None when it runs nothing."""

    url: str
    config_offset: int
    allocation: MemberAssignment | None = None
    own: OwnFields | None = field(default_factory=OwnFields)


def encode_metadata(metadata: Metadata) -> bytes:
    """Encodes the member's metadata; without own fields it is Connect's own v2 layout, byte for byte."""
    allocation = None if metadata.allocation is None else encode_assignment(metadata.allocation)
    parts = [
        struct.pack(">h", VERSION),
        _string(metadata.url),
        struct.pack(">q", metadata.config_offset),
        _bytes(allocation),
    ]
    if metadata.own is not None:
        own = metadata.own
        parts.append(struct.pack(">hi", OWN_VERSION, len(own.labels)))
        parts += [_string(k) + _string(v) for k, v in sorted(own.labels.items())]
        parts.append(struct.pack(">i?", own.load, own.leaving))
        parts.append(_bytes(_packed(_weights(own.weights)) if own.weights else None))
        if own.unfit:  # earlier versions end before it
            parts.append(_bytes(own.unfit.encode()[:MAX_UNFIT_BYTES]))
    return b"".join(parts)


def decode_metadata(data: bytes) -> Metadata:
    """Reads v0, v1, v2 and later versions as v2; ignores trailing bytes of others. Raises InvalidArgument."""
    with _Reader(data) as reader:
        version = reader.int16()
        url, offset = reader.string(), reader.int64()
        raw = reader.nullable_bytes() if version >= 1 else None
        allocation = None if raw is None else decode_assignment(raw)
        own = None
        if reader.left >= 2 and reader.int16() >= OWN_VERSION:
            labels = {reader.string(): reader.string() for _ in range(reader.int32())}
            load, leaving = reader.int32(), reader.boolean()
            weights = _unpacked_weights(reader.nullable_bytes())
            unfit = (reader.nullable_bytes() or b"").decode(errors="replace") if reader.left else ""
            own = OwnFields(labels, load, leaving, weights, unfit)
        return Metadata(url, offset, allocation, own)


def encode_assignment(assignment: MemberAssignment) -> bytes:
    """Encodes the leader's answer to one member, or a member's allocation.

    With many works Connect's fields are empty, and all works are packed after them.
    """
    works = _works(assignment.assigned) + _works(assignment.revoked)
    packed = len(works) > PLAIN_BYTES
    return b"".join(
        (
            struct.pack(">hh", VERSION, assignment.error),
            _string(assignment.leader),
            _string(assignment.leader_url),
            struct.pack(">q", assignment.config_offset),
            _works(()) * 2 if packed else works,
            struct.pack(">i", assignment.delay_ms),
            PACKED + _bytes(_packed(works)) if packed else b"",
        )
    )


def decode_assignment(data: bytes) -> MemberAssignment:
    """Reads v0, v1, v2 and later versions as v2. Raises InvalidArgument for bytes that are no assignment."""
    with _Reader(data) as reader:
        version, error = reader.int16(), reader.int16()
        leader, url, offset = reader.string(), reader.string(), reader.int64()
        assigned = reader.works()
        revoked = reader.works() if version >= 1 else ()
        delay = reader.int32() if version >= 1 else 0
        if reader.skips(PACKED):
            with _Reader(_unpacked(reader.nullable_bytes() or b"")) as works:
                assigned, revoked = works.works(), works.works()
        return MemberAssignment(leader, url, offset, assigned, revoked, delay, error)


def _packed(raw: bytes) -> bytes:
    return zlib.compress(raw, 1)


def _unpacked(raw: bytes) -> bytes:
    """Unpacks bytes. Raises InvalidArgument if they are not packed or become too long."""
    packer = zlib.decompressobj()
    try:
        unpacked = packer.decompress(raw, MAX_BYTES)
    except zlib.error:
        unpacked = b""
    if not packer.eof:
        raise InvalidArgument(f"group protocol: {len(raw)} bytes cannot be unpacked to at most {MAX_BYTES}")
    return unpacked


def _weights(weights: Mapping[Work, int]) -> bytes:
    return struct.pack(">i", len(weights)) + b"".join(
        _string(work.connector) + struct.pack(">ii", work.task, weight) for work, weight in sorted(weights.items())
    )


def _unpacked_weights(raw: bytes | None) -> dict[Work, int]:
    if raw is None:
        return {}
    with _Reader(_unpacked(raw)) as reader:
        return dict(reader.weight() for _ in range(reader.int32()))


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def _bytes(raw: bytes | None) -> bytes:
    return struct.pack(">i", -1) if raw is None else struct.pack(">i", len(raw)) + raw


def _works(works: Iterable[Work]) -> bytes:
    by_connector: dict[str, list[int]] = {}
    for work in works:
        by_connector.setdefault(work.connector, []).append(work.task)
    parts = [struct.pack(">i", len(by_connector))]
    for connector, tasks in by_connector.items():
        parts.append(_string(connector) + struct.pack(f">i{len(tasks)}i", len(tasks), *tasks))
    return b"".join(parts)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, (struct.error, UnicodeDecodeError)):
            raise InvalidArgument(f"group protocol: {len(self._data)} bytes are not of this layout") from None

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def skips(self, mark: bytes) -> bool:
        """Skips these bytes if they come next; returns whether they did."""
        is_there = self._data.startswith(mark, self._at)
        self._at += len(mark) if is_there else 0
        return is_there

    def int16(self) -> int:
        return self._integer(_INT16)

    def int32(self) -> int:
        return self._integer(_INT32)

    def int64(self) -> int:
        return self._integer(_INT64)

    def boolean(self) -> bool:
        return bool(self._integer(_INT8))

    def _integer(self, form: struct.Struct) -> int:
        value: int = form.unpack_from(self._data, self._at)[0]
        self._at += form.size
        return value

    def _raw(self, size: int) -> bytes:
        if size < 0 or size > self.left:
            raise struct.error("cut short")
        raw = self._data[self._at : self._at + size]
        self._at += size
        return raw

    def string(self) -> str:
        return self._raw(self.int16()).decode()

    def nullable_bytes(self) -> bytes | None:
        size = self.int32()
        return None if size < 0 else self._raw(size)

    def works(self) -> tuple[Work, ...]:
        works: list[Work] = []
        for _ in range(self.int32()):
            name = self.string()
            works += [Work(name, task) for task in self._int32s(self.int32())]
        return tuple(works)

    def _int32s(self, count: int) -> tuple[int, ...]:
        """Reads all at once: a large group's leader reads tens of thousands."""
        if count * 4 > self.left:
            raise struct.error("cut short")
        numbers = struct.unpack_from(f">{max(0, count)}i", self._data, self._at)
        self._at += 4 * len(numbers)
        return numbers

    def weight(self) -> tuple[Work, int]:
        name = self.string()
        task, weight = self._int32s(2)
        return Work(name, task), weight
