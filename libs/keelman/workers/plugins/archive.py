"""Opens zip, jar, wheel and tar.gz files from untrusted sources: bounded in memory and time, and refused when unsafe.

Every entry is checked before the first is read. Refused are: paths that lead elsewhere, links and devices, encrypted
entries, duplicate names, files that are folders too, entries that overlap, and files that unpack to far more than their
size.
"""

from __future__ import annotations

import gzip
import io
import re
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, cast

from keelman.model.errors import InvalidArgument

BLOCK_BYTES = 1 << 20
BROKEN = (OSError, ValueError, RuntimeError, NotImplementedError, EOFError, zipfile.BadZipFile, tarfile.TarError,
          zlib.error, RecursionError, OverflowError)  # fmt: skip
"""The errors of the standard library's readers for broken files."""
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_DIRECTORY_ENTRY = b"PK\x01\x02"
_LOCAL_HEADER_BYTES = 30
_MAX_NAME, _MAX_PART, _MAX_SHOWN = 1024, 255, 200
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one archive. `ratio`: unpacked bytes for each packed one, for sizes above `ratio_from_bytes`."""

    entries: int = 100_000
    total_bytes: int = 4 << 30
    ratio: int = 200
    ratio_from_bytes: int = 32 << 20
    directory_bytes: int = 32 << 20
    """The bound for a zip's directory, which is read into memory."""


BOUNDS = Bounds()


class ArchiveRefused(InvalidArgument):
    """A file is not a usable archive. The metadata name the `entry`, if one is at fault, and the `rule`."""

    reason = "PLUGIN_REFUSED"


def refusal(rule: str, reason: str, entry: str = "") -> ArchiveRefused:
    """Returns the error; `rule` is its stable word, `reason` a sentence's end after the entry's name."""
    entry = entry[:_MAX_SHOWN]
    text = f"{entry!r} {reason}" if entry else reason
    return ArchiveRefused(f"plugin file refused ({rule}): {text}", metadata={"rule": rule, "entry": entry})


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """A file in an archive: its path, checked, and its size unpacked."""

    path: str
    size: int
    mark: object
    """The archive's own reference to the entry."""


class Archive(Protocol):
    """An open archive whose entries are all legal."""

    entries: list[ArchiveEntry]

    def open(self, entry: ArchiveEntry) -> IO[bytes]:
        """Opens an entry for at most the bytes of its size. Broken entries raise errors of BROKEN."""


class _Zip:
    def __init__(self, file: zipfile.ZipFile, entries: list[ArchiveEntry]) -> None:
        self.entries, self._file = entries, file

    def open(self, entry: ArchiveEntry) -> IO[bytes]:
        assert isinstance(entry.mark, zipfile.ZipInfo)
        return self._file.open(entry.mark)


class _Tar:
    def __init__(self, plain: IO[bytes], entries: list[ArchiveEntry]) -> None:
        self.entries, self._plain = entries, plain

    def open(self, entry: ArchiveEntry) -> IO[bytes]:
        assert isinstance(entry.mark, int)
        return cast(IO[bytes], io.BufferedReader(_Slice(self._plain, entry.mark, entry.size)))


@contextmanager
def open_zip(file: IO[bytes], size: int, bounds: Bounds = BOUNDS, *, is_jar: bool = False) -> Iterator[Archive]:
    """Opens a zip, jar or wheel of `size` bytes. Raises ArchiveRefused, also for a broken one."""
    with ExitStack() as stack:
        guard = _Guard(file, bounds.directory_bytes, bounds.entries)
        try:
            archive = stack.enter_context(zipfile.ZipFile(guard))
        except ArchiveRefused:
            raise
        except BROKEN as error:
            raise refusal("broken", f"not a zip archive that can be read: {error}") from error
        guard.entries = 0
        yield _Zip(archive, _zip_entries(archive, size, bounds, is_jar=is_jar))


@contextmanager
def open_tar_gz(file: IO[bytes], size: int, bounds: Bounds = BOUNDS, folder: Path | None = None) -> Iterator[Archive]:
    """Opens a gzipped tar archive of `size` bytes, unzipped into a nameless file in `folder`. Raises ArchiveRefused."""
    with ExitStack() as stack:
        plain = stack.enter_context(tempfile.TemporaryFile(dir=folder))
        _unzip(file, plain, size, bounds)
        plain.seek(0)
        try:
            archive = stack.enter_context(tarfile.open(fileobj=_Guard(plain, BLOCK_BYTES), mode="r:"))
            entries = _tar_entries(archive, bounds)
        except ArchiveRefused:
            raise
        except BROKEN as error:
            raise refusal("broken", f"not a tar archive that can be read: {error}") from error
        yield _Tar(plain, entries)


def copied(archive: Archive, entry: ArchiveEntry, target: IO[bytes]) -> None:
    """Copies an entry's bytes. Raises ArchiveRefused if they are broken, or fewer or more than its size."""
    count = 0
    try:
        with archive.open(entry) as source:
            while block := source.read(BLOCK_BYTES):
                count += len(block)
                if count > entry.size:
                    break
                target.write(block)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError) as error:
        raise refusal("broken", f"cannot be unpacked: {error}", entry.path) from error
    if count != entry.size:
        raise refusal("broken", f"has not the {entry.size} bytes of its entry", entry.path)


def unpack(archive: Archive, folder: Path) -> None:
    """Writes all entries below an empty folder; the caller deletes the folder when this raises."""
    for entry in archive.entries:
        target = folder / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            copied(archive, entry, file)


def checked_path(name: str) -> str:
    """Returns an entry's path without a leading "./". Raises ArchiveRefused for an illegal path."""
    if not name or "\0" in name:
        raise refusal("name", "has no name, or a NUL in it", name or "?")
    if "\\" in name:
        raise refusal("backslash", "has a backslash in its name", name)
    if name.startswith("/") or _DRIVE.match(name):
        raise refusal("absolute-path", "is an absolute path", name)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise refusal("parent-path", "leads out of the archive ('..')", name)
    if len(name) > _MAX_NAME or any(len(part.encode(errors="surrogateescape")) > _MAX_PART for part in parts):
        raise refusal("name", f"has a name of more than {_MAX_NAME} characters or {_MAX_PART} bytes a part", name)
    if not name.isprintable():
        raise refusal("name", "has a name that is not printable text", name)
    return "/".join(parts)


class _Guard(io.RawIOBase):
    """A file that refuses to read more than `most` bytes at once, as its readers would for false headers."""

    def __init__(self, file: IO[bytes], most: int, entries: int = 0) -> None:
        self._file, self._most, self.entries = file, most, entries

    def read(self, size: int = -1) -> bytes:
        if size > self._most:
            raise refusal("directory", f"its headers name {size} bytes of directory; legal are {self._most}")
        data = self._file.read(self._most if size < 0 else size)
        if self.entries and data.count(_DIRECTORY_ENTRY) > self.entries:
            raise refusal("entries", f"more than {self.entries} entries")
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class _Slice(io.RawIOBase):
    """`size` bytes of a file from a position on, as a file of its own."""

    def __init__(self, file: IO[bytes], begin: int, size: int) -> None:
        self._file, self._begin, self._size, self._at = file, begin, size, 0

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._begin + self._at)
        data = self._file.read(max(min(len(buffer), self._size - self._at), 0))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max((0, self._at, self._size)[whence] + offset, 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class _Paths:
    """The paths in an archive so far."""

    def __init__(self) -> None:
        self._files: dict[str, object] = {}
        self._folders: set[str] = set()

    def add(self, path: str, same: object = None) -> bool:
        """Adds a file. Returns False if it was there with the same content. Raises ArchiveRefused for a conflict."""
        if not path:
            raise refusal("name", "is a file with the name of the folder itself", ".")
        if path in self._files:
            if same is not None and self._files[path] == same:
                return False
            raise refusal("duplicate", "comes twice", path)
        if path in self._folders:
            raise refusal("duplicate", "is a file and a folder", path)
        self._files[path] = same
        self.add_folder(path.rpartition("/")[0])
        return True

    def add_folder(self, path: str) -> None:
        while path and path not in self._folders:
            if path in self._files:
                raise refusal("duplicate", "is a file and a folder", path)
            self._folders.add(path)
            path = path.rpartition("/")[0]


def _zip_entries(archive: zipfile.ZipFile, size: int, bounds: Bounds, *, is_jar: bool) -> list[ArchiveEntry]:
    infos = archive.infolist()
    if len(infos) > bounds.entries:
        raise refusal("entries", f"{len(infos)} entries; legal are {bounds.entries}")
    entries, paths, total = [], _Paths(), 0
    for info in infos:
        name = info.orig_filename
        path = checked_path(name)
        _check_zip_entry(info, bounds)
        total += info.file_size
        if name.endswith("/"):
            paths.add_folder(path)
        elif paths.add(path, (info.CRC, info.file_size) if is_jar else None):
            entries.append(ArchiveEntry(path, info.file_size, info))
    _check_total(total, size, bounds)
    _check_overlap(infos)
    return entries


def _check_zip_entry(info: zipfile.ZipInfo, bounds: Bounds) -> None:
    name = info.orig_filename
    if info.flag_bits & 0x1:
        raise refusal("encrypted", "is encrypted", name)
    if info.compress_type not in _METHODS:
        raise refusal("method", f"is packed by method {info.compress_type}; legal are stored and deflated", name)
    # A folder's mode does not matter: Maven's older archivers give folders the mode 0xFFFF.
    if not name.endswith("/") and stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise refusal("link", "is a link or a device, and no file", name)
    if info.file_size > bounds.ratio_from_bytes and info.file_size > bounds.ratio * max(info.compress_size, 1):
        raise refusal("ratio", f"unpacks to more than {bounds.ratio} times its size", name)


def _check_total(total: int, size: int, bounds: Bounds) -> None:
    if total > bounds.total_bytes:
        raise refusal("total-size", f"it unpacks to {total} bytes; legal are {bounds.total_bytes}")
    if total > bounds.ratio_from_bytes and total > bounds.ratio * max(size, 1):
        raise refusal("ratio", f"it unpacks to more than {bounds.ratio} times its size")


def _check_overlap(infos: list[zipfile.ZipInfo]) -> None:
    """Raises ArchiveRefused where entries share bytes: that is how small files unpack to endless ones."""
    end, before = 0, ""
    for info in sorted(infos, key=lambda entry: entry.header_offset):
        if info.header_offset < end:
            raise refusal("overlap", f"overlaps {before!r}", info.orig_filename)
        end = info.header_offset + _LOCAL_HEADER_BYTES + info.compress_size
        before = info.orig_filename


def _unzip(file: IO[bytes], plain: IO[bytes], size: int, bounds: Bounds) -> None:
    total = 0
    try:
        with gzip.GzipFile(fileobj=file) as unzipped:
            while block := unzipped.read(BLOCK_BYTES):
                total += len(block)
                _check_total(total, size, bounds)
                plain.write(block)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise refusal("broken", f"not a gzip file that can be read: {error}") from error


def _tar_entries(archive: tarfile.TarFile, bounds: Bounds) -> list[ArchiveEntry]:
    entries, paths, count = [], _Paths(), 0
    while (member := archive.next()) is not None:
        archive.members.clear()  # type: ignore[attr-defined]
        count += 1
        if count > bounds.entries:
            raise refusal("entries", f"more than {bounds.entries} entries")
        name = member.name
        if member.isdir() and name.strip("/.") == "" and not name.startswith("/") and ".." not in name:
            continue
        path = checked_path(name)
        if member.isdir():
            paths.add_folder(path)
            continue
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.sparse is not None:
            raise refusal("link", "is a link, a device or a file with holes, and no plain file", name)
        paths.add(path)
        entries.append(ArchiveEntry(path, member.size, member.offset_data))
    return entries


@contextmanager
def seekable(archive: Archive, entry: ArchiveEntry) -> Iterator[IO[bytes]]:
    """Opens an entry as a seekable file: a nameless copy if the archive compresses its entries."""
    if isinstance(archive, _Tar):
        yield archive.open(entry)
        return
    with tempfile.TemporaryFile() as file:
        copied(archive, entry, file)
        file.seek(0)
        yield file
