"""Files that take each write once: written beside their place, claimed by one small file, and then moved.

Below the path is a folder `_keelman/<writer>`. Readers of files pass folders over whose names begin with "_".

1. Spark writes into `<version>-<attempt>` there.
2. The file `<version>.json` is created, which fails where there is one: it is the commit. It has the name of the
   attempt and the ends of the write.
3. The files of the attempt that it names are moved to the path; then the attempt's folder is deleted.

An attempt without such a file counts for nothing; the files of an attempt with it are moved by the next attempt if
they have not been. On stores without a rename (S3) a file is copied, and a crash in the middle leaves nothing half: an
object exists as a whole or not at all.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Collection, Iterator
from typing import Any

from keelman.api.copy.v1.write_job_pb2 import WriteJob
from keelman.model.errors import FailedPrecondition, Unavailable

FOLDER = "_keelman"
KEPT_CLAIMS = 5
_CLAIM = re.compile(r"([0-9]+)\.json")


def write_files(session: Any, path: str, job: WriteJob, save: Callable[[str], None]) -> None:
    """Writes the job's records to the path once; `save` has Spark write them into a folder. Blocks.

    Raises FailedPrecondition when the path has a write of that number with other ends, and Spark's and Hadoop's
    errors.
    """
    folder = Folder(session, path)
    claims = f"{FOLDER}/{job.writer}"
    claim = f"{claims}/{job.version}.json"
    if (text := folder.text(claim)) is None:
        attempt = f"{job.version}-{uuid.uuid4().hex[:12]}"
        for other in folder.names(claims):
            if other.startswith(f"{job.version}-"):
                folder.delete(f"{claims}/{other}")
        save(folder.full(f"{claims}/{attempt}"))
        if not folder.create(claim, json.dumps({"attempt": attempt, "ends": ends_of(job)})):
            folder.delete(f"{claims}/{attempt}")
        text = folder.text(claim)
    claimed = json.loads(text or "{}")
    check_ends(path, job, claimed.get("ends", []))
    folder.move(f"{claims}/{claimed['attempt']}")
    for old in _passed_claims(folder.names(claims), job.version):
        folder.delete(f"{claims}/{old}")


def ends_of(job: WriteJob) -> list[str]:
    """Returns where a job ends in each partition: topic-partition:offset."""
    return sorted(f"{stretch.topic}-{stretch.partition}:{stretch.end}" for stretch in job.ranges)


def check_ends(name: str, job: WriteJob, written: Collection[str]) -> None:
    """Raises FailedPrecondition when the write of that number ends elsewhere in a partition of the job.

    It may have more partitions, whose offsets a person has set since, and older records, which brokers have removed
    since.
    """
    if not set(ends_of(job)) <= set(written):
        raise FailedPrecondition(
            f"{name} has write {job.version} of this connector up to {', '.join(written)}, not up to "
            f"{', '.join(ends_of(job))}: the offsets of its group were moved back by another process. Stop the "
            "connector and set its offsets",
            reason="WRITTEN_OTHERWISE",
        )


def _passed_claims(names: list[str], version: int) -> list[str]:
    numbers = [(int(match[1]), name) for name in names if (match := _CLAIM.fullmatch(name))]
    return [name for number, name in numbers if number <= version - KEPT_CLAIMS]


class Folder:
    """A folder of any file system that Spark knows, by Hadoop's client in Spark's JVM. Names are relative to it."""

    def __init__(self, session: Any, path: str) -> None:
        self._jvm = session.sparkContext._jvm
        configuration = session._jsparkSession.sessionState().newHadoopConf()
        root = self._jvm.org.apache.hadoop.fs.Path(path)
        self._files = root.getFileSystem(configuration)
        self._root = self._files.makeQualified(root)

    def full(self, name: str) -> str:
        """Returns a name's full path."""
        return str(self._path(name).toString())

    def names(self, name: str) -> list[str]:
        """Returns the names in a folder; none where it does not exist."""
        path = self._path(name)
        return [str(entry.getPath().getName()) for entry in self._files.listStatus(path)] if self._is(path) else []

    def text(self, name: str) -> str | None:
        """Returns the text of a file; None without one."""
        path = self._path(name)
        if not self._is(path):
            return None
        stream = self._files.open(path)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def create(self, name: str, text: str) -> bool:
        """Creates a file with a text as a whole; returns False where there is one."""
        path, beside = self._path(name), self._path(f"{name}.{uuid.uuid4().hex[:8]}")
        stream = self._files.create(beside, False)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        if self._is(path) or not self._files.rename(beside, path):
            self._files.delete(beside, False)
            return False
        return True

    def delete(self, name: str) -> None:
        """Deletes a file, or a folder with all in it."""
        self._files.delete(self._path(name), True)

    def move(self, name: str) -> None:
        """Moves the data files below a folder to the same names below the root, and deletes the folder. Another may do
        it at the same time. Raises Unavailable when a file could not be moved."""
        folder = self._path(name)
        if not self._is(folder):
            return
        for path, relative in self._data_files(folder, ""):
            target = self._path(relative)
            if "/" in relative:
                self._files.mkdirs(target.getParent())
            if not self._is(target) and not self._renamed(path, target):
                raise Unavailable(f"{path.toString()} could not be moved to {target.toString()}", reason="NOT_MOVED")
        self._files.delete(folder, True)

    def _renamed(self, path: Any, target: Any) -> bool:
        try:
            moved = bool(self._files.rename(path, target))
        except Exception as error:  # py4j's, of a file that another has moved
            if "FileNotFound" not in str(error):
                raise
            moved = False
        return moved or self._is(target)

    def _data_files(self, folder: Any, above: str) -> Iterator[tuple[Any, str]]:
        for entry in list(self._files.listStatus(folder)):
            name = str(entry.getPath().getName())
            if entry.isDirectory():
                yield from self._data_files(entry.getPath(), f"{above}{name}/")
            elif not name.startswith(("_", ".")):
                yield entry.getPath(), f"{above}{name}"

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)

    def _is(self, path: Any) -> bool:
        return bool(self._files.exists(path))
