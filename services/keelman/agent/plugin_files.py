"""Unpacks plugins into the node's home, each file once. What a file holds is checked as at its upload."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from keelman.model.plugin import PluginKind
from keelman.model.wheel_paths import installed_path
from keelman.workers.plugins.archive import Archive, Entry, copied, refusal
from keelman.workers.plugins.inspection import kind_of, opened

BEGUN = ".new-"
"""Of folders that are being unpacked."""
GOING = ".old-"
"""Of folders that are being deleted."""
WHEEL = ".whl"


def digest_of(file: Path) -> str:
    """The file's sha256 in hex. Raises OSError."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def unpack(file: Path, folder: Path, *, name: str, file_name: str) -> None:
    """Makes the folder, which has one folder of the plugin's name as a `plugin.path` has it: the jars and wheels of an
    archive, a jar as it is, a wheel as it is installed.

    It is there whole or not at all. Raises ArchiveRefused for a file that cannot be used, OSError.
    """
    temporary = Path(tempfile.mkdtemp(prefix=f"{BEGUN}{folder.name[:16]}-", dir=folder.parent))
    try:
        inside = temporary / name
        inside.mkdir()
        kind = kind_of(file, file_name)
        if kind is PluginKind.JAR:
            with opened(file, kind):  # checks it
                shutil.copyfile(file, inside / (PurePosixPath(file_name).name or f"{name}.jar"))
        else:
            with opened(file, kind, scratch=temporary) as archive:
                paths = _as_installed(archive) if kind is PluginKind.WHEEL else _as_plugin(archive.entries)
                _write(archive, paths, inside)
        _open_to_all(temporary)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _as_installed(archive: Archive) -> Iterator[tuple[Entry, str]]:
    """A wheel's entries at the paths where an installation has them; none that are not imported."""
    for entry in archive.entries:
        path = installed_path(entry.path)
        if path is not None:
            yield entry, str(path)


def _as_plugin(entries: Sequence[Entry]) -> Iterator[tuple[Entry, str]]:
    """An archive's entries without the folder that all of them are in; wheels at the top, where they are looked for."""
    tops = {PurePosixPath(entry.path).parts[0] for entry in entries}
    nested = len(tops) == 1 and all("/" in entry.path for entry in entries)
    for entry in entries:
        path = entry.path.partition("/")[2] if nested else entry.path
        yield entry, path.rpartition("/")[2] if path.lower().endswith(WHEEL) else path


def _write(archive: Archive, paths: Iterator[tuple[Entry, str]], folder: Path) -> None:
    for entry, path in paths:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("xb") as file:
                copied(archive, entry, file)
        except FileExistsError:
            raise refusal("name", "is there twice once it is unpacked", entry.path) from None


def _open_to_all(folder: Path) -> None:
    """Workloads may run as another user than the agent."""
    for path, _, files in os.walk(folder):
        os.chmod(path, 0o755)
        for name in files:
            os.chmod(os.path.join(path, name), 0o644)
