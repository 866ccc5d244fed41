"""Cuts a sink's own uncommitted bytes out of a file: only announced writes, and nothing that others wrote.

The bytes that were cut are kept beside the file, in one of a few files, and their records are copied again.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from keelman.connect.errors import RetriableConnectError
from keelman.connect.policy.folders import opener
from keelman.engine.sink.exactly_once.announcements import Announcement
from keelman.runtime.home import sync_folder
from keelman.runtime.logs.logging import get_logger

MOST_KEPT = 10
BLOCK_BYTES = 1 << 20

_log = get_logger()


class ByteRange(NamedTuple):
    """A range of bytes of a file."""

    begin: int
    end: int


def own_stretches(descriptor: int, announced: Sequence[Announcement]) -> list[ByteRange]:
    """Returns the ranges of announced writes that a file holds, in order; adjacent writes form one range."""
    size = os.fstat(descriptor).st_size
    stretches: list[ByteRange] = []
    for write in sorted(announced, key=lambda stretch: stretch.begin):
        length = write.found(lambda count, at: os.pread(descriptor, count, at), size)
        if not length or (stretches and write.begin < stretches[-1].end):
            continue
        if stretches and stretches[-1].end == write.begin:
            stretches[-1] = ByteRange(stretches[-1].begin, write.begin + length)
        else:
            stretches.append(ByteRange(write.begin, write.begin + length))
    return stretches


def cut(path: Path, descriptor: int, own: Sequence[ByteRange]) -> int:
    """Cuts these ranges; the bytes between and behind them move up. Returns the number of bytes cut.

    Raises RetriableConnectError, for instance if there is no room to keep the bytes.
    """
    length = sum(stretch.end - stretch.begin for stretch in own)
    if not length:
        return 0
    try:
        copy_path = _keep(path, descriptor, own)
        _log.warning(
            "torn_tail_cut",
            file=str(path),
            bytes=length,
            kept=str(copy_path),
            note="the sink had written it and not committed it: its records are copied again",
        )
        _take_out(descriptor, own)
        os.fdatasync(descriptor)
    except OSError as error:
        raise RetriableConnectError(f"{path}: its torn tail cannot be cut: {error.strerror}") from error
    return length


def kept_copies(path: Path) -> list[Path]:
    """Returns the files with bytes cut from a file, the oldest first."""
    return sorted(path.parent.glob(f".{path.name}.keelman-cut-*"))


def _keep(path: Path, descriptor: int, own: Sequence[ByteRange]) -> Path:
    for old in kept_copies(path)[: 1 - MOST_KEPT]:
        old.unlink(missing_ok=True)
    copy_path = path.with_name(f".{path.name}.keelman-cut-{time.time_ns():020d}")
    with open(copy_path, "xb", opener=opener) as copy:
        for stretch in own:
            at = stretch.begin
            while at < stretch.end:
                block = os.pread(descriptor, min(BLOCK_BYTES, stretch.end - at), at)
                if not block:
                    break
                copy.write(block)
                at += len(block)
        copy.flush()
        os.fsync(copy.fileno())
    sync_folder(path.parent)
    return copy_path


def _take_out(descriptor: int, own: Sequence[ByteRange]) -> None:
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~os.O_APPEND)  # pwrite would append
    try:
        to, source = own[0].begin, own[0].end
        for following in [*own[1:], None]:
            while block := os.pread(
                descriptor, BLOCK_BYTES if following is None else min(BLOCK_BYTES, following.begin - source), source
            ):
                to += os.pwrite(descriptor, block, to)
                source += len(block)
            source = source if following is None else following.end
        os.ftruncate(descriptor, to)
    finally:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
