"""Finds the plugins in a file, or in a folder of jars, without starting any of its code.

Bounded: entries, bytes, ratio and depth. Jars and wheels must be in the file itself; archives in archives in it are not
inspected, and archives other than jars and wheels are noted as a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from keelman.model.plugins.plugin import PluginClass, PluginKind
from keelman.runtime.java.installation import MINIMUM
from keelman.workers.plugins.archive import (
    BOUNDS,
    Archive,
    ArchiveEntry,
    ArchiveRefused,
    Bounds,
    copied,
    open_tar_gz,
    open_zip,
    refusal,
    seekable,
)
from keelman.workers.plugins.inner_classes import refusal as inner_refusal
from keelman.workers.plugins.java_classes import JavaClasses
from keelman.workers.plugins.versions import NameAndVersion, legal_name, legal_version, of_file_name
from keelman.workers.plugins.wheel_metadata import wheel_classes, wheel_version

MAX_PROBLEMS, MAX_PROBLEM = 100, 1000
MAX_CLASSES_BYTES, _CLASS_COST = 400_000, 60
"""The bound for all plugin classes together: Kafka's records, with the events of plugins, have at most 1 MB."""
PARTS = (".jar", ".whl")
_BOMBS = ("ratio", "total-size", "overlap", "entries", "directory")
_INNER_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".7z", ".rar", ".war", ".ear")


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of inspecting a file or folder. `kind` is None for a folder. `problems` are for people; the files and
    classes that they name are not used.

    `name` and `version` come from the file's name and metadata; either may be empty. `inner` has, by connector, the
    internal classes of Kafka Connect that it uses, and `refused` why a connector cannot run in keelman.
    """

    kind: PluginKind | None
    classes: tuple[PluginClass, ...]
    problems: tuple[str, ...] = ()
    name: str = ""
    version: str = ""
    inner: Mapping[str, Sequence[str]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


def inspect(
    source: Path | IO[bytes], file_name: str = "", *, java: int = MINIMUM, bounds: Bounds = BOUNDS
) -> Inspection:
    """Returns the content of a plugin's file, a path or an open file. Reads all of it: work for a thread or a process.

    `file_name` is the file's name if that is not its path's; `java` the lowest release that workers run. Raises
    ArchiveRefused naming entry and rule.
    """
    file_name = file_name or (source.name if isinstance(source, Path) else "")
    kind, named = kind_of(source, file_name), of_file_name(file_name)

    def read(reader: _Reader) -> None:
        with opened(source, kind, bounds=bounds) as archive:
            reader.read(archive, kind, file_name)

    reader = _read(read, java, bounds)
    if reader.wheel is not None:
        named = NameAndVersion(reader.wheel.name or named.name, reader.wheel.version or named.version)
    return _inspection(kind, reader.java, reader.python, reader.problems, named)


def inspect_folder(folder: Path, *, java: int = MINIMUM, bounds: Bounds = BOUNDS) -> Inspection:
    """Returns the content of the jars of a folder and of the folders in it, which extend each other's classes.

    A jar that cannot be used is a problem, not an error. Raises OSError if the folder cannot be read.
    """
    paths = sorted(folder.rglob("*.jar"))

    def read(reader: _Reader) -> None:
        for path in paths:
            inner = str(path.relative_to(folder))
            try:
                with opened(path, PluginKind.JAR, bounds=bounds) as archive:
                    reader.java.add(archive, inner)
            except (ArchiveRefused, OSError) as error:
                reader.problems.append(f"{inner}: {error}")

    reader = _read(read, java, bounds)
    return _inspection(None, reader.java, [], reader.problems, NameAndVersion("", ""))


def _read(read: Callable[[_Reader], None], java: int, bounds: Bounds) -> _Reader:
    """Fills a reader; if a class names an internal class of Connect, fills another one that also follows which classes
    name which."""
    for follows in (False, True):
        reader = _Reader(JavaClasses(java, follows=follows), bounds)
        read(reader)
        if not reader.java.looks_inside:
            break
    return reader


def _inspection(
    kind: PluginKind | None,
    java: JavaClasses,
    python: Sequence[PluginClass],
    problems: Sequence[str],
    named: NameAndVersion,
) -> Inspection:
    classes = sorted([*java.found(), *python])
    problems = [*problems, *java.problems]
    inner = java.inner(classes)
    problems_of = {name: inner_refusal(name, inner_classes) for name, inner_classes in inner.items()}
    refused = {name: text[:MAX_PROBLEM] for name, text in [*problems_of.items()][:MAX_PROBLEMS] if text}
    names = {name: sorted(name.replace("/", ".") for name in inner_classes) for name, inner_classes in inner.items()}
    return Inspection(kind, _listed(classes, problems), _few(problems), named.name, named.version, names, refused)


def kind_of(source: Path | IO[bytes], file_name: str) -> PluginKind:
    """Returns a file's kind by its first bytes and its name. Raises ArchiveRefused for other kinds."""
    with _file(source) as file:
        magic = file.read(4)
    lower = file_name.lower()
    if magic[:2] == b"\x1f\x8b":
        return PluginKind.TAR_GZ
    if magic in (b"PK\x03\x04", b"PK\x05\x06"):
        endings = {".jar": PluginKind.JAR, ".whl": PluginKind.WHEEL}
        return endings.get(lower[-4:], PluginKind.ZIP)
    raise refusal("kind", f"{file_name!r} is no zip, jar, wheel or tar.gz by its first bytes")


@contextmanager
def opened(
    source: Path | IO[bytes], kind: PluginKind, *, bounds: Bounds = BOUNDS, scratch: Path | None = None
) -> Iterator[Archive]:
    """Opens a plugin's file as an archive whose entries are all legal. Raises ArchiveRefused."""
    with _file(source) as file:
        size = file.seek(0, 2)
        file.seek(0)
        if kind is PluginKind.TAR_GZ:
            with open_tar_gz(file, size, bounds, scratch) as archive:
                yield archive
        else:
            with open_zip(file, size, bounds, is_jar=kind is PluginKind.JAR) as archive:
                yield archive


@contextmanager
def _file(source: Path | IO[bytes]) -> Iterator[IO[bytes]]:
    if isinstance(source, Path):
        with source.open("rb") as file:
            yield file
    else:
        source.seek(0)
        yield source


@dataclass(slots=True)
class _Reader:
    """Looks into the jars and wheels of an archive."""

    java: JavaClasses
    bounds: Bounds
    python: list[PluginClass] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    wheel: NameAndVersion | None = None
    """Name and version in a wheel's metadata."""
    _unpacked: int = 0

    def read(self, archive: Archive, kind: PluginKind, file_name: str) -> None:
        """Reads a whole file of this kind."""
        match kind:
            case PluginKind.JAR:
                self.java.add(archive, file_name)
            case PluginKind.WHEEL:
                self.python = wheel_classes(archive, file_name, self.problems)
                name, version = wheel_version(archive)
                self.wheel = NameAndVersion(legal_name(name), legal_version(version))
            case PluginKind.ZIP | PluginKind.TAR_GZ:
                self.read_parts(archive)

    def read_parts(self, archive: Archive) -> None:
        """Reads all entries of an archive, also those that are neither jar nor wheel, since they may be broken."""
        parts = 0
        for entry in archive.entries:
            if entry.path.endswith(PARTS):
                parts += 1
                with seekable(archive, entry) as file:
                    self._read_part(file, entry)
            else:
                copied(archive, entry, _NOWHERE)
                if entry.path.lower().endswith(_INNER_ARCHIVES):
                    self.problems.append(f"{entry.path}: an archive in the archive, which is not looked into")
        if not parts:
            self.problems.append("has neither jars nor wheels")

    def _read_part(self, file: IO[bytes], entry: ArchiveEntry) -> None:
        """Reads a jar or wheel. An illegal one is a problem; an archive bomb refuses the file."""
        is_jar = entry.path.endswith(".jar")
        try:
            with open_zip(file, entry.size, self.bounds, is_jar=is_jar) as inner:
                self._unpacked += sum(entry.size for entry in inner.entries)
                if self._unpacked > self.bounds.total_bytes:
                    raise refusal("total-size", f"all in it unpacks to more than {self.bounds.total_bytes} bytes")
                if is_jar:
                    self.java.add(inner, entry.path)
                else:
                    self.python += wheel_classes(inner, entry.path, self.problems)
        except ArchiveRefused as error:
            if error.metadata["rule"] in _BOMBS:
                raise refusal(error.metadata["rule"], f"is refused: {error}", entry.path) from error
            self.problems.append(f"{entry.path}: {error}")


def _listed(classes: Sequence[PluginClass], problems: list[str]) -> tuple[PluginClass, ...]:
    """Returns as many classes as fit into an event; if there are more, that is a problem."""
    left = MAX_CLASSES_BYTES
    for number, plugin_class in enumerate(classes):
        left -= (
            len(plugin_class.class_name.encode())
            + len(plugin_class.path.encode())
            + len(plugin_class.version.encode())
            + _CLASS_COST
        )
        if left < 0:
            problems.append(f"{len(classes) - number} more plugin classes are not listed")
            return tuple(classes[:number])
    return tuple(classes)


def _few(problems: Sequence[str]) -> tuple[str, ...]:
    few = [
        problem if len(problem) <= MAX_PROBLEM else problem[:MAX_PROBLEM] + " ..."
        for problem in problems[:MAX_PROBLEMS]
    ]
    return (*few, *([f"{len(problems) - len(few)} more problems"] if len(problems) > len(few) else []))


class _Nowhere:
    def write(self, data: bytes) -> int:
        return len(data)


_NOWHERE: IO[bytes] = _Nowhere()  # type: ignore[assignment]
