"""Streams a log as part of a JSON answer: whole lines, from a given time on, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import orjson

NOTHING = "\n"
"""The value of a log without lines: clients refuse empty strings."""
_HEAD = 1000
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d(?::?\d\d)?)?")


def moment_of(line: str) -> datetime | None:
    """Returns the first time in a log line, in UTC if it has no zone; None for a line without a time."""
    match = _MOMENT.search(line[:_HEAD])
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        named = datetime.fromisoformat(f"{day}T{clock}.{(fraction or '0')[:6].ljust(6, '0')}{zone or '+00:00'}")
        return named.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


async def since(lines: AsyncIterator[bytes], moment: datetime | None) -> AsyncIterator[bytes]:
    """Yields the lines from the first line with this time or a later one on; all lines for None."""
    passed = moment is None
    async for piece in lines:
        if passed:
            yield piece
            continue
        assert moment is not None
        position = 0
        for line in piece.splitlines(keepends=True):
            named = moment_of(line[:_HEAD].decode("utf-8", "replace"))
            if named is not None and named >= moment:
                passed = True
                yield piece[position:]
                break
            position += len(line)


async def json_string(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yields the text of whole lines as a JSON string, in pieces; bytes that are not UTF-8 are replaced."""
    yield b'"'
    empty = True
    async for piece in pieces:
        if piece:
            empty = False
            yield orjson.dumps(piece.decode("utf-8", "replace"))[1:-1]
    if empty:
        yield orjson.dumps(NOTHING)[1:-1]
    yield b'"'
