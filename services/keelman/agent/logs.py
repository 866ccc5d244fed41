"""A workload's log: one file that its process appends to, cut when it grows too long, read from its end and followed.

Cutting copies the file to log.1 (over the one before) and empties it, since the process keeps its descriptor; it
appends, so it goes on at the start. Lines written in the instant between the copy and the cut are lost. Cut at 16 MiB,
a log takes at most some 32 MiB of disk.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path

from keelman.runtime.logs.filter import ConnectorLines

LARGEST_BYTES = 16 * 1024 * 1024
PIECE_BYTES = 256 * 1024
LOOK_SECONDS = 0.2
LINE_CHARACTERS = 500
WHOLE_LOG = 1 << 40


def log_file(folder: Path) -> Path:
    """The log of the workload with this folder."""
    return folder / "log"


def cut_if_long(file: Path, *, largest_bytes: int = LARGEST_BYTES) -> bool:
    """Cuts the log when it is longer than that; True when it did. Called every few seconds, in a thread."""
    try:
        if file.stat().st_size <= largest_bytes:
            return False
        copy = file.with_name("log.copying")
        with file.open("rb+") as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target, PIECE_BYTES)
            while piece := source.read(PIECE_BYTES):
                target.write(piece)
            target.flush()
            # Renamed before the cut: a reader that finds the file cut finds the old lines already in place.
            os.replace(copy, older(file))
            source.truncate(0)
    except FileNotFoundError:
        return False
    return True


def older(file: Path) -> Path:
    """What was cut off."""
    return file.with_name("log.1")


def last_line(file: Path, since: int = 0) -> str:
    """The last line with text that a process wrote whose log began at `since`; shortened; empty when it wrote none."""
    try:
        with file.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            begin = since if since <= size else 0
            log.seek(max(begin, size - 16 * 1024))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:LINE_CHARACTERS] if lines else ""


async def read_log(file: Path, *, tail_lines: int, follow: bool) -> AsyncIterator[bytes]:
    """Whole lines from the given number of lines before the end; with `follow` also what comes, until the file is gone.

    Each piece is at most 256 KiB, unless one line is longer. A last line without its end gets one, but not while the
    log is being followed.
    """
    try:
        log = file.open("rb")
    except FileNotFoundError:
        return
    with log:
        position = _tail_start(log.fileno(), tail_lines)
        cut = _inode(older(file))
        rest = b""
        while True:
            if (now := _inode(older(file))) != cut and os.fstat(log.fileno()).st_size < older(file).stat().st_size:
                cut, piece, position = now, _from(older(file), position), 0
            else:
                piece = os.pread(log.fileno(), PIECE_BYTES, position)
                position += len(piece)
            if piece:
                whole, end, rest = (rest + piece).rpartition(b"\n")
                if end:
                    yield whole + end
                continue
            if not follow or os.fstat(log.fileno()).st_nlink == 0:
                break
            await asyncio.sleep(LOOK_SECONDS)
        if rest:
            yield rest + b"\n"


async def read_log_of(about: ConnectorLines, file: Path, *, tail_lines: int, follow: bool) -> AsyncIterator[bytes]:
    """The same of the lines about one connector alone; the tail counts these."""
    last = deque[bytes](maxlen=tail_lines)
    behind = file.stat().st_size if file.exists() else 0
    async for piece in read_log(file, tail_lines=WHOLE_LOG, follow=follow):
        kept = about.kept(piece.splitlines(keepends=True))
        if behind > 0:
            last.extend(kept.splitlines(keepends=True))
            behind -= len(piece)
            if behind > 0:
                await asyncio.sleep(0)
                continue
            kept = b"".join(last)
            last.clear()
        if kept:
            yield kept
    if last:
        yield b"".join(last)


def _tail_start(descriptor: int, lines: int) -> int:
    end = os.fstat(descriptor).st_size
    if not end:
        return 0
    # The line end of the last line does not begin another.
    position, wanted = end - 1, lines
    while position > 0:
        begin = max(0, position - PIECE_BYTES)
        piece = os.pread(descriptor, position - begin, begin)
        at = len(piece)
        while (at := piece.rfind(b"\n", 0, at)) >= 0:
            wanted -= 1
            if not wanted:
                return begin + at + 1
        position = begin
    return 0


def _from(file: Path, position: int) -> bytes:
    try:
        with file.open("rb") as old:
            old.seek(position)
            return old.read()
    except OSError:
        return b""


def _inode(file: Path) -> int:
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return 0
