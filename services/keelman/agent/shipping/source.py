"""Reads a workload's log in batches of whole lines, from a kept position on, over cuts and deaths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from keelman.agent.shipping.lines import ClusterLines, formed
from keelman.agent.shipping.progress import DeliveryProgress
from keelman.runtime.logs.parts import PIECE_BYTES, Log, PartsReader


@dataclass(frozen=True, slots=True)
class Stream:
    """Lines that are delivered under one name: all of a log, or those about one worker cluster."""

    name: str
    """The last folder: e.g. demo-0 of worker 0, slots-n1 for the log of slots on node n1."""
    workload: str
    """The workload that writes it."""
    file: Path
    worker: str
    """17 hex digits."""
    about: str = ""
    """A worker cluster; empty: all lines."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines as they are delivered, each without its end, and the log's position after them."""

    lines: tuple[bytes, ...]
    end: int
    mine: bool
    lost: int = 0
    """Bytes before them that are not kept any more."""


class Source:
    """Opens the log when it is there. Blocks: work for a thread."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._lines = ClusterLines(stream.about) if stream.about else None
        self._reader: PartsReader | None = None

    def close(self) -> None:
        """Closes the log."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def place(self, progress: DeliveryProgress) -> DeliveryProgress:
        """Returns the position to continue from in the present log: its beginning, when it is another file or was
        emptied."""
        if self._reader is not None and self._reader.gone and not self.waiting(progress):
            self.close()
        if self._reader is None:
            try:
                self._reader = PartsReader(Log(self._stream.file))
            except FileNotFoundError:
                return progress
        if progress.inode == self._reader.inode and progress.position <= self._reader.end():
            return progress
        return DeliveryProgress(0, self._reader.inode, length=progress.length, target=progress.target, id=progress.id)

    def at_end(self, progress: DeliveryProgress) -> DeliveryProgress:
        """Returns the same with all that is in the log now passed over."""
        progress = self.place(progress)
        return progress if self._reader is None else replace(progress, position=self._reader.end())

    def waiting(self, progress: DeliveryProgress) -> int:
        """Returns the bytes that are not delivered yet."""
        return 0 if self._reader is None else max(0, self._reader.end() - progress.position)

    def read(
        self, progress: DeliveryProgress, most_bytes: int, *, until: int | None = None, last: bool = False
    ) -> Batch | None:
        """Returns the next whole lines, some `most_bytes` of them, and none beyond `until`; None when there are none
        yet.

        `last`: nothing more is written, so that a line without its end is one.
        """
        if self._reader is None:
            return None
        text, at, lost = b"", progress.position, 0
        while len(text) < most_bytes and (until is None or at < until):
            most = PIECE_BYTES if until is None else min(PIECE_BYTES, until - at)
            piece, after = self._reader.read(at, most)
            if not piece:
                break
            missed = after - len(piece) - at
            if missed > 0 and text:
                last = True  # the rest of its last line is gone
                break
            text, at, lost = text + piece, after, lost + max(0, missed)
        whole, line_end, rest = text.rpartition(b"\n")
        if rest and (last or (until is not None and at >= until) or (not line_end and len(rest) >= most_bytes)):
            lines = text.split(b"\n")
        elif line_end:
            lines, at = whole.split(b"\n"), at - len(rest)
        else:
            return None
        return self._batch(lines, at, progress.mine, lost)

    def _batch(self, lines: list[bytes], end: int, mine: bool, lost: int) -> Batch:
        formed_lines: list[bytes] = []
        for line in lines:
            if self._lines is not None:
                mine = self._lines.is_mine(line, mine)
                if not mine:
                    continue
            formed_lines += formed(line, self._stream.worker)
        return Batch(tuple(formed_lines), end, mine, lost)
