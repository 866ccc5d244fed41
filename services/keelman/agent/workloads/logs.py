"""Reads a workload's log from near its end, and follows it: the file that its process appends to and its parts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path

from keelman.runtime.logs.filter import ConnectorLines
from keelman.runtime.logs.parts import PIECE_BYTES, Log, PartsReader

LOOK_SECONDS = 0.2
LINE_CHARACTERS = 500


def log_file(folder: Path) -> Path:
    """Returns the log of the workload with this folder."""
    return folder / "log"


def last_line(file: Path, since: int = 0) -> str:
    """Returns the last line with text of a process whose log began at `since`; shortened; empty when it wrote none."""
    try:
        with PartsReader(Log(file)) as reader:
            text = reader.last_bytes(16 * 1024, since if since <= reader.end() else 0).decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:LINE_CHARACTERS] if lines else ""


async def read_log(file: Path, *, tail_lines: int, follow: bool) -> AsyncIterator[bytes]:
    """Yields whole lines from the given number of lines before the end; with `follow` also new ones, until the file is
    gone.

    Each piece is at most 256 KiB, unless one line is longer. A last line without its end gets one, but not while the
    log is being followed.
    """
    try:
        reader = PartsReader(Log(file))
    except FileNotFoundError:
        return
    with reader:
        async for piece, _ in _lines(reader, await asyncio.to_thread(reader.tail, tail_lines), follow=follow):
            yield piece


async def read_log_of(about: ConnectorLines, file: Path, *, tail_lines: int, follow: bool) -> AsyncIterator[bytes]:
    """As `read_log`, with only the lines about one connector; the tail counts these."""
    try:
        reader = PartsReader(Log(file))
    except FileNotFoundError:
        return
    with reader:
        begin = await asyncio.to_thread(_begin_of, about, reader, tail_lines)
        last = deque[bytes](maxlen=tail_lines)
        end: int | None = reader.end()
        async for piece, position in _lines(reader, begin, follow=follow):
            lines = about.kept(piece.splitlines(keepends=True))
            if end is not None:
                last.extend(lines.splitlines(keepends=True))
                if position < end:
                    await asyncio.sleep(0)
                    continue
                lines, end = b"".join(last), None
                last.clear()
            if lines:
                yield lines
        if last:
            yield b"".join(last)


async def _lines(reader: PartsReader, position: int, *, follow: bool) -> AsyncIterator[tuple[bytes, int]]:
    """Yields whole lines from a position on, and the position up to which the log was read for them."""
    rest = b""
    while True:
        piece, position = reader.read(position, PIECE_BYTES)
        if piece:
            whole, end, rest = (rest + piece).rpartition(b"\n")
            if end:
                yield whole + end, position
            continue
        if not follow or reader.gone:
            break
        await asyncio.sleep(LOOK_SECONDS)
    if rest:
        yield rest + b"\n", position


def _begin_of(about: ConnectorLines, reader: PartsReader, lines: int) -> int:
    """Returns a position from which on there are so many lines about the connector, if there are; work for a thread.

    It looks at whole parts, the newest first: most requests are for lines in the file itself.
    """
    for begin, end in reversed(reader.stretches()):
        judge, position, rest = about.again(), begin, b""
        while position < end:
            piece, position = reader.read(position, min(PIECE_BYTES, end - position))
            if not piece:
                break
            whole, _, rest = (rest + piece).rpartition(b"\n")
            lines -= len(judge.kept(whole.splitlines(keepends=True)).splitlines())
        if lines <= 0:
            return begin
    return reader.begin()
