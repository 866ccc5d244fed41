"""A file sink under test without Kafka: numbered records, a group's offset, and others' changes of the file."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from keelman.connect.errors import RetriableConnectError
from keelman.connect.plugin import Assignment, KeptOffset, Writer
from keelman.connect.records import Column, SinkBatch, TopicPartition
from keelman.connect.tasks.kept_offsets import SinkReader
from keelman.connectors.file.sink import FileStreamSink
from keelman.engine.sink.positions.offsets import GroupOffset, SourceLog, start_of

P0 = TopicPartition("t", 0)
READER = SinkReader("workers", "connect-c", "cluster")
STRANGE = b"by hand\n"
_WHOLE = re.compile(rb"(\d{7}) x{190}\n")


def line(number: int) -> bytes:
    """A numbered record, so long that a few of them fill a page."""
    return b"%07d " % number + b"x" * 190


def written(first: int, behind: int) -> bytes:
    """The lines of these records, as they are in a file."""
    return b"".join(line(number) + b"\n" for number in range(first, behind))


class SunkFile:
    """Consecutive runs of a sink into a file, each started at the position of journal and group."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.group: int | None = None
        self.position = 0
        self.ended: list[str] = []
        self._writer: Writer | None = None

    def start(self) -> Writer:
        """Starts a run, unless one exists."""
        if self._writer is None:
            self._writer = FileStreamSink.open_writer({"file": str(self.path)}, "c", exactly_once=True)
            stored = self._writer.take_over(Assignment(READER, {P0: self.group})).get(P0)
            self.position = start_of(stored, GroupOffset(self.group), SourceLog()).offset or 0
        return self._writer

    def write(self, to: int) -> None:
        """Writes records up to this one, seven at a time, without a commit."""
        self.start()
        while self.position < to:
            writer, batch = self.start(), [line(n) for n in range(self.position, min(self.position + 7, to))]
            try:
                writer.write(SinkBatch(Column(batch, utf8=True)))
                self.position += len(batch)
            except RetriableConnectError as error:
                self._ends(error)

    def commit(self, *, clean: bool = False) -> bool:
        """Commits to the journal and the group; False if the run ended before."""
        try:
            self.start().commit({P0: KeptOffset(self.position, (self.group,))}, clean=clean)
        except RetriableConnectError as error:
            self._ends(error)
            return False
        self.group = self.position
        return True

    def copy(self, to: int) -> None:
        """Writes records up to this one and commits, repeatedly if runs end meanwhile."""
        self.write(to)
        while not self.commit():
            self.write(to)

    def kill(self) -> None:
        """Ends the run as kill -9 does: nothing is committed."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def stop(self) -> None:
        """Ends the run as a drain does."""
        self.commit(clean=True)
        self.kill()

    def _ends(self, error: RetriableConnectError) -> None:
        self.ended.append(str(error))
        self.kill()

    def found(self) -> tuple[list[int], list[bytes]]:
        """The sorted numbers of the whole lines, except cut ones, and all other lines.

        Of the file and of those beside it.
        """
        numbers, others = [], []
        for file in self.path.parent.rglob("*"):
            if file.is_file() and ".keelman-" not in file.name:
                raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
                for text in raw.splitlines(keepends=True):
                    whole = _WHOLE.fullmatch(text)
                    numbers += [int(whole[1])] if whole else []
                    others += [] if whole else [text]
        return sorted(numbers), others
