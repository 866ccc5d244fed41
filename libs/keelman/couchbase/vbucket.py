"""Tracks the position of a vbucket's stream, and builds the request that continues from there. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from struct import Struct
from typing import NamedTuple

from keelman.couchbase.manifest import Collection

NO_END = 0xFFFF_FFFF_FFFF_FFFF
_REQUEST = Struct(">IIQQQQQ")
ACTIVE_ONLY, IGNORE_PURGED = 0x10, 0x80


class HistoryPlace(NamedTuple):
    """The part of an offset beside its sequence number: the branch of the history, the snapshot that contains the
    change, and the uid of the collections' manifest. The events of one snapshot share one place."""

    vbuuid: int = 0
    snapshot_start: int = 0
    snapshot_end: int = 0
    manifest_uid: int = 0


class Position(NamedTuple):
    """A position in a vbucket: reading continues after change `seqno`. `place` is None if an offset has none."""

    seqno: int = 0
    place: HistoryPlace | None = HistoryPlace()


class Event(NamedTuple):
    """A change of a document or, with `kind` 0, of the offset only. Numbers are unsigned.

    `collection` is None if no manifest knows it any more. `key` and `value` are the document's, as they were sent;
    `size` is the size of the whole frame in bytes.
    """

    kind: int
    vbucket: int
    seqno: int
    place: HistoryPlace
    collection: Collection | None
    key: bytes
    value: bytes
    datatype: int
    cas: int
    revision: int
    flags: int
    expiry: int
    lock_time: int
    size: int


VBUCKET_OF, SEQNO_OF, SIZE_OF = (itemgetter(Event._fields.index(name)) for name in ("vbucket", "seqno", "size"))
"""For whole lists of events."""


class Branch(NamedTuple):
    """A branch of a vbucket's history, and the number of the last change before it."""

    vbuuid: int
    seqno: int


def parse_log(value: bytes) -> list[Branch]:
    """Returns the branches of a failover log, the newest first."""
    return [Branch._make(pair) for pair in Struct(">QQ").iter_unpack(value[: len(value) // 16 * 16])]


@dataclass(slots=True)
class Vbucket:
    """The stream of one vbucket, open or not."""

    number: int
    seqno: int = 0
    place: HistoryPlace = field(default_factory=HistoryPlace)
    pending: tuple[int, int] | None = None
    """A snapshot that was announced and has had no event yet."""
    log: Sequence[Branch] = field(default_factory=tuple)
    asked: frozenset[int] = frozenset()
    """Ids of the collections that the stream requested; empty if it requested all, or a scope."""

    @property
    def announced_to(self) -> int:
        """The highest change number that the server has announced."""
        return max(self.seqno, self.pending[1] if self.pending else self.place.snapshot_end)

    def start(self, position: Position, log: Sequence[Branch]) -> None:
        """Sets the position from an offset; the failover log and the sequence number supply its missing parts."""
        newest = log[0].vbuuid if log else 0
        self.log = log
        self.seqno, place = position.seqno, position.place
        if place is None:
            self.place = HistoryPlace(newest if position.seqno else 0, position.seqno, position.seqno)
        elif place.vbuuid == 0 and position.seqno:
            self.place = place._replace(vbuuid=newest)
        else:
            self.place = place
        self.pending = None

    def request(self, *, ignore_purged: bool) -> bytes:
        """Returns the extras of a stream request."""
        _, start, end, _ = self.place
        if not start <= self.seqno <= end:
            start = end = self.seqno
        flags = ACTIVE_ONLY | (IGNORE_PURGED if ignore_purged else 0)
        return _REQUEST.pack(flags, 0, self.seqno, NO_END, self.place.vbuuid, start, end)

    def opened(self, log: Sequence[Branch]) -> None:
        """Records that the server streams: the first branch of its log is that of the following events."""
        self.log, self.pending = log, None
        if log:
            self.place = self.place._replace(vbuuid=log[0].vbuuid)

    def rolled_back(self, seqno: int) -> None:
        """Goes back to this number: the server has another history after it."""
        self.log = [branch for branch in self.log if branch.seqno <= seqno]
        vbuuid = self.log[0].vbuuid if self.log and seqno else 0
        self.seqno, self.pending = seqno, None
        self.place = HistoryPlace(vbuuid, seqno, seqno, self.place.manifest_uid)

    def announced(self, start: int, end: int) -> None:
        """Records a snapshot that begins with the next event."""
        self.pending = (start, end)

    def advance(self, seqno: int) -> HistoryPlace:
        """Records an event. Returns its place."""
        self.seqno = seqno
        if self.pending is not None:
            vbuuid, _, _, uid = self.place
            self.place, self.pending = HistoryPlace(vbuuid, *self.pending, uid), None
        return self.place

    def collections_changed(self, seqno: int, uid: int) -> HistoryPlace:
        """Records a system event. Returns its place."""
        self.place = self.advance(seqno)._replace(manifest_uid=uid)
        return self.place

    def skipped_to(self, seqno: int) -> HistoryPlace:
        """Records that the server skipped changes that were not requested. Returns the place."""
        self.advance(seqno)
        self.place = self.place._replace(snapshot_start=seqno, snapshot_end=seqno)
        return self.place
