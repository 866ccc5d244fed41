"""Appends to a regular file exactly once: a journal beside it ties the file to offsets.

Before each write the journal announces it, so that after a kill the sink's own torn tail differs from lines that others
appended: only the torn tail is cut, and only if the consumer group still shows the offsets that the journal expects.
When the file is renamed, the sink commits its lines there and continues with a new file of the name. When lines written
since the last commit are missing from the file, the run ends before the commit, and the next run writes them again.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from keelman.connect.errors import RetriableConnectError
from keelman.connect.plugin import Assignment, KeptOffset, Writer
from keelman.connect.policy.folders import open_file
from keelman.connect.records import SinkBatch, TopicPartition
from keelman.connectors.file import former_files, torn_tail
from keelman.connectors.file.appending import AppendedFile, lines
from keelman.engine.sink.exactly_once.announcements import Announcement
from keelman.engine.sink.exactly_once.journal import Entry, Journal, owner_of
from keelman.engine.sink.positions.offsets import is_ours
from keelman.runtime.home import sync_folder
from keelman.runtime.logs.logging import get_logger

LOCK_SECONDS = 5.0

_log = get_logger()


class JournaledWriter(Writer):
    """Holds the file's lock while it is open."""

    keeps_offsets = True

    def __init__(self, path: Path, connector: str) -> None:
        """Locks the file and reads its journal. Raises ConnectError."""
        self._path = path
        self._connector = self._owner = connector
        self._journal = Journal(path)
        self._file = self._opened()
        self._written = False
        self._recovered = False
        try:
            self._entry = self._journal.load() or self._begun()
        except BaseException:
            self._file.close()
            raise
        self._all = {owner: dict(offsets) for owner, offsets in self._entry.offsets.items()}
        self._shown: Mapping[TopicPartition, int | None] = {}

    def kept(self) -> Mapping[TopicPartition, KeptOffset]:
        """Returns the journaled offsets of its reader; before it has a reader, those of the connector's name."""
        return dict(self._all.get(self._owner, {}))

    def take_over(self, assignment: Assignment) -> Mapping[TopicPartition, KeptOffset]:
        """Returns the offsets of this reader, including those journaled under the connector's name alone that are
        surely this reader's. The first call also restores the file to the state in its journal."""
        self._owner = owner_of(self._connector, assignment.reader)
        mine, old = self._all.setdefault(self._owner, {}), self._all.get(self._connector, {})
        for partition, shown in assignment.offsets.items():
            shared = any(partition in offsets for owner, offsets in self._all.items() if owner != self._connector)
            if partition in old and partition not in mine and is_ours(old[partition], shown, shared=shared):
                mine[partition] = old.pop(partition)
        self._shown = {**self._shown, **assignment.offsets}
        if not self._recovered:
            self._recover(agrees=self._agrees(assignment.offsets))
        return dict(mine)

    def write(self, batch: SinkBatch) -> None:
        """Appends one line a value; visible at once, durable with the next commit."""
        if not self._recovered:
            self._recover(agrees=True)
        if not self._written:
            self._follow_name()
        data = lines(batch.values)
        begin = self._file.size()
        self._announce(data, begin)
        self._written = True
        actual = self._file.append(data)
        if actual != begin:  # another process appended in between
            self._announce(data, actual)

    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        """Makes the data durable, then its journal entry. Raises RetriableConnectError, as `write` does."""
        if not self._recovered:
            self._recover(agrees=True)
        self._all.setdefault(self._owner, {}).update(offsets)
        if self._written:
            self._sync_announcements()
            self._file.settle()
            self._entry = self._begun()
        self._save()
        self._file.settled()
        self._written = False

    def close(self) -> None:
        """Closes the file, which gives the lock back."""
        self._journal.close()
        self._file.close()

    def _opened(self) -> AppendedFile:
        is_new = not self._path.exists()
        file = AppendedFile(self._path)
        try:
            if not file.regular:
                raise RetriableConnectError(f"{self._path}: not a regular file any more")
            self._lock(file)
            if is_new:
                sync_folder(self._path.parent)
        except BaseException:
            file.close()
            raise
        return file

    def _lock(self, file: AppendedFile) -> None:
        """Waits briefly for a predecessor that is about to end."""
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                return fcntl.flock(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise RetriableConnectError(f"{self._path}: another writer holds the file's lock") from None
                time.sleep(0.02)

    def _begun(self) -> Entry:
        modified = os.fstat(self._file.descriptor).st_mtime_ns
        return Entry(self._file.end, inode=self._file.inode, mark=self._mark(), modified=modified)

    def _mark(self) -> str:
        if not self._file.readable:
            return ""
        return former_files.digest(former_files.read_edges(self._file.descriptor, self._file.end))

    def _announce(self, data: bytes, begin: int) -> None:
        try:
            self._journal.announce(Announcement.of(data, begin))
        except OSError as error:
            raise self._unwritable(error) from error

    def _sync_announcements(self) -> None:
        try:
            self._journal.sync()
        except OSError as error:
            raise self._unwritable(error) from error

    def _save(self) -> None:
        remaining = {owner: offsets for owner, offsets in self._all.items() if offsets}
        self._entry = replace(self._entry, offsets=remaining, shown={self._owner: self._shown})
        try:
            self._journal.save(self._entry)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> RetriableConnectError:
        return RetriableConnectError(f"{self._journal.path}: cannot be written: {error.strerror}")

    def _agrees(self, shown: Mapping[TopicPartition, int | None]) -> bool:
        """Returns whether the group's offsets are those the journal expects: no other writer has copied for it
        since."""
        mine, before = self._all.get(self._owner, {}), self._entry.shown.get(self._owner, {})
        for partition, offset in shown.items():
            own = mine.get(partition)
            expected = (before.get(partition),) if own is None else (own.offset, *own.mirrored)
            if offset is not None and offset not in expected:
                return False
        return True

    def _follow_name(self) -> None:
        """Changes to a new file if the path leads elsewhere by now; all earlier lines are committed."""
        file, log = self._file, _log.bind(file=str(self._path), bytes=self._file.end)
        status = os.fstat(file.descriptor)
        if not file.bears_its_name():
            self._file = self._opened()
            file.close()
            if status.st_nlink:
                log.info("file_rotated", note="all of its text is committed: continues with a new file of its name")
            else:
                log.warning("file_removed", note="its committed text is gone with it: continues with a new file")
        elif not self._holds(self._entry):
            former = self._tell_of_former(self._event(self._entry, status.st_size), self._entry, status.st_size)
            if former is not None:
                os.close(former.descriptor)
            file.end = status.st_size
        else:
            return
        self._entry = self._begun()
        self._save()

    def _recover(self, *, agrees: bool) -> None:
        """Cuts the remains of an unfinished commit, and logs how others changed the file meanwhile."""
        entry, file = self._entry, self._file
        same = entry.inode == file.inode and self._holds(entry)
        there = same and (not file.readable or _is_of(entry, file.descriptor))
        former = None if there else self._tell_of_former(self._event(entry, file.end), entry, file.end, same=same)
        try:
            self._cut(entry, former, same=same, agrees=agrees)
        finally:
            if former is not None:
                os.close(former.descriptor)
        file.end = os.fstat(file.descriptor).st_size
        self._recovered = True
        self._entry = self._begun()
        self._save()

    def _holds(self, entry: Entry) -> bool:
        """Returns whether the file still has its committed content, as far as its length and edges tell."""
        if not entry.mark or not self._file.readable:
            return os.fstat(self._file.descriptor).st_size >= entry.length
        return former_files.fits(self._file.descriptor, entry.length, entry.mark)

    def _event(self, entry: Entry, size: int) -> str:
        if entry.inode != self._file.inode:
            return "file_replaced"
        return "file_shortened" if size < entry.length else "file_rewritten"

    def _tell_of_former(
        self, event: str, entry: Entry, size: int, *, same: bool = False
    ) -> former_files.FormerFile | None:
        """Logs the event, and returns the former file that holds committed or announced lines missing from the named
        file. With `same` the committed lines are still in the named file, as far as that can be told."""
        log = _log.bind(file=str(self._path), journaled=entry.length, length=size)
        former = None
        if entry.mark and (entry.length or entry.announced):
            # A copy with announced lines to cut was made after they were written: it is younger than the journal's
            # entry.
            since = entry.modified + 1 if entry.announced else 0
            former = former_files.find_former(str(self._path), entry.inode, partial(_is_of, entry), since=since)
        if former is not None:
            log.info(event, former=former.path, note="the committed text is in the former file: continues in this one")
        elif (entry.length or entry.announced) and not (same and entry.length):
            log.warning(
                event,
                announced=sum(stretch.length for stretch in entry.announced),
                note="so many journaled bytes were committed and are neither in this file nor beside it; announced "
                "bytes that were not committed are written again: continues at this file's end",
            )
        return former

    def _cut(self, entry: Entry, former: former_files.FormerFile | None, *, same: bool, agrees: bool) -> None:
        log = _log.bind(file=str(self._path), journaled=entry.length)
        behind = self._file.end - entry.length if same else 0
        if entry.announced and not (agrees and self._file.readable):
            reason = "the group's offsets are not the journal's" if self._file.readable else "the file may not be read"
            log.warning("torn_tail_left", bytes=behind, note=f"{reason}: nothing is cut")
            self._end_line()
            return
        cut_bytes = 0
        if entry.inode == self._file.inode:
            cut_bytes = self._cut_from(self._path, self._file.descriptor, entry)
        if former is not None:
            cut_bytes += self._cut_former(former, entry)
        if behind > cut_bytes and not entry.clean:
            log.warning("tail_left", bytes=behind, note="an older version wrote it, or others: it may come twice")
        elif behind > cut_bytes and cut_bytes < sum(stretch.length for stretch in entry.announced):
            log.warning(
                "tail_left", bytes=behind - cut_bytes, note="another process appended it; its torn lines may come twice"
            )
            self._end_line()
        elif behind > cut_bytes:
            log.info("file_grew", bytes=behind - cut_bytes, note="text that others appended stays")

    def _cut_former(self, former: former_files.FormerFile, entry: Entry) -> int:
        if not entry.announced:
            return 0
        try:
            descriptor = open_file(former.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise RetriableConnectError(f"{former.path}: its torn tail cannot be cut: {error.strerror}") from error
        try:
            return self._cut_from(Path(former.path), descriptor, entry)
        finally:
            os.close(descriptor)

    def _cut_from(self, path: Path, descriptor: int, entry: Entry) -> int:
        if not entry.announced:
            return 0
        return torn_tail.cut(path, descriptor, torn_tail.own_stretches(descriptor, entry.announced))

    def _end_line(self) -> None:
        """Ends a last line that may be torn, so that the next write begins a new line."""
        self._file.end = os.fstat(self._file.descriptor).st_size
        if self._file.end and not self._file.last_bytes().endswith(b"\n"):
            self._file.append(b"\n")


def _is_of(entry: Entry, descriptor: int) -> bool:
    """Returns whether a file holds the content that the journal has as committed, and some announced lines behind
    it."""
    if entry.mark and not former_files.fits(descriptor, entry.length, entry.mark):
        return False
    return not entry.announced or bool(torn_tail.own_stretches(descriptor, entry.announced))
