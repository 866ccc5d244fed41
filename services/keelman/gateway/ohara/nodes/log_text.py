"""Makes a log part of a JSON answer piece by piece: whole lines, from a moment on, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import orjson

NOTHING = "\n"
"""Stands for a log without lines: clients refuse empty strings."""
_HEAD = 1000
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d(?::?\d\d)?)?")


def moment_of(line: str) -> datetime | None:
    """The first moment that a log line names, UTC where it names no zone; None for a line without one."""
    found = _MOMENT.search(line[:_HEAD])
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        named = datetime.fromisoformat(f"{day}T{clock}.{(fraction or '0')[:6].ljust(6, '0')}{zone or '+00:00'}")
        return named.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


async def since(lines: AsyncIterator[bytes], moment: datetime | None) -> AsyncIterator[bytes]:
    """What was written from a moment on, all with None: from the first line that names a moment not before it."""
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
    """The text of these whole lines as a JSON string, piece by piece; what is not UTF-8 is replaced."""
    yield b'"'
    empty = True
    async for piece in pieces:
        if piece:
            empty = False
            yield orjson.dumps(piece.decode("utf-8", "replace"))[1:-1]
    if empty:
        yield orjson.dumps(NOTHING)[1:-1]
    yield b'"'
