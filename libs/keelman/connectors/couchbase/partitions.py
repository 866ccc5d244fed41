"""A task's vbuckets as text, and source partitions and offsets as the official connector writes them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connect.offsets import in_json
from keelman.connect.records import Offset, Partition
from keelman.connect.watches import VbucketPosition, VbucketWatch
from keelman.couchbase.vbucket import HistoryPlace, Position

_SIGN, _ALL = 1 << 63, 1 << 64
_PLACE = ("vbuuid", "snapshotStartSeqno", "snapshotEndSeqno")


def dealt(vbuckets: int, tasks: int) -> list[list[int]]:
    """Returns runs of vbuckets whose lengths differ by at most one, longer ones first; no empty runs."""
    each, more = divmod(vbuckets, tasks)
    parts, at = [], 0
    for task in range(tasks):
        count = each + (task < more)
        if count:
            parts.append(list(range(at, at + count)))
        at += count
    return parts


def written(vbuckets: Sequence[int]) -> str:
    """Returns the text of some vbuckets: `0..341`, `3;4`, `7`."""
    runs: list[list[int]] = []
    for vbucket in sorted(vbuckets):
        if runs and vbucket == runs[-1][-1] + 1:
            runs[-1].append(vbucket)
        else:
            runs.append([vbucket])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]}..{run[-1]}"] if len(run) > 2 else map(str, run)
    return ";".join(parts)


def read(text: str) -> list[int]:
    """Returns the vbuckets of such a text. Raises ConnectError."""
    numbers: list[int] = []
    try:
        for part in filter(None, text.split(";")):
            first, _, last = part.partition("..")
            numbers += range(int(first), int(last or first) + 1)
    except ValueError:
        raise ConnectError(f"couchbase.partitions is no set of vbuckets: {text!r}") from None
    return numbers


def partition(bucket: str, vbucket: int, connector: str = "") -> Partition:
    """Returns the source partition of a vbucket; with `connector` if offsets name it."""
    named = {"connector": connector} if connector else {}
    return {"bucket": bucket, "partition": str(vbucket), **named}


def offset(seqno: int, place: HistoryPlace) -> Offset:
    """Returns the source offset behind a change."""
    return {
        "bySeqno": signed(seqno),
        "vbuuid": signed(place.vbuuid),
        "snapshotStartSeqno": signed(place.snapshot_start),
        "snapshotEndSeqno": signed(place.snapshot_end),
        "collectionsManifestUid": signed(place.manifest_uid),
    }


def position(stored: Mapping[str, Any]) -> Position:
    """Returns the position in such an offset; fields that it lacks get defaults or None. Raises ConnectError."""
    seqno = _number(stored, "bySeqno")
    if seqno is None:
        raise ConnectError(f"The source offset has no bySeqno: {in_json(stored)}")
    vbuuid, start, end = (_number(stored, name) for name in _PLACE)
    uid = _number(stored, "collectionsManifestUid") or 0
    if vbuuid is None and start is None:
        return Position(seqno, None)
    return Position(
        seqno, HistoryPlace(vbuuid or 0, seqno if start is None else start, seqno if end is None else end, uid)
    )


def watch(
    vbuckets: str, bucket: str, committed: Callable[[Partition], Offset | None], properties: Mapping[str, str]
) -> VbucketWatch | None:
    """Returns the watch of a task that has read up to its offsets; None if a vbucket has no offset with its branch.

    Raises ConnectError."""
    places: dict[int, VbucketPosition] = {}
    for number in read(vbuckets):
        stored = committed(partition(bucket, number))
        seqno, place = (0, None) if stored is None else position(stored)
        if place is None:
            return None
        places[number] = VbucketPosition(seqno, place.vbuuid)
    return VbucketWatch(properties, places)


def signed(number: int) -> int:
    """Returns 64 bits as Java reads them."""
    return number - _ALL if number >= _SIGN else number


def signed_32(number: int) -> int:
    """Returns 32 bits as Java reads them."""
    return number - (1 << 32) if number >= 1 << 31 else number


def _number(stored: Mapping[str, Any], name: str) -> int | None:
    value = stored.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConnectError(f"{name} of the source offset is not a number: {in_json(stored)}")
    return value % _ALL
