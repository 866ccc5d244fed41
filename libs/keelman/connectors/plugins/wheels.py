"""Unpacks wheels into the cache, each set of them once. Nothing of a wheel is imported or run."""

from __future__ import annotations

import hashlib
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from keelman.model.errors import InvalidArgument
from keelman.model.plugins.wheel_paths import installed_path
from keelman.runtime.home import cache_folder

MAX_FILES = 50_000
MAX_BYTES = 2 << 30
COPY_BYTES = 1 << 20


def unpacked(wheels: Sequence[Path]) -> Path:
    """Returns the folder with all of these wheels, side by side as they are installed; creates it if it is missing.

    Its name is the digest of their contents, so that another file under an old name gets another folder. Raises
    InvalidArgument (PLUGIN_BROKEN) naming a file that is no wheel, is over the bounds or would write elsewhere,
    OSError when the cache cannot be written.
    """
    digest = hashlib.sha256()
    for wheel in sorted(wheels):
        with wheel.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    folder = cache_folder() / "plugins" / digest.hexdigest()[:32]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        for wheel in sorted(wheels):
            _unpack(wheel, temporary)
        with suppress(FileExistsError):
            _move(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def entry_points_text(wheel: Path) -> str:
    """The wheel's entry_points.txt, empty without one. Raises InvalidArgument as `unpacked` does."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                folder, _, name = entry.filename.rpartition("/")
                if name == "entry_points.txt" and folder.endswith(".dist-info") and entry.file_size <= COPY_BYTES:
                    return archive.read(entry).decode()
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise _broken(wheel, error) from error
    return ""


def _unpack(wheel: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_FILES or sum(e.file_size for e in entries) > MAX_BYTES:
                raise _broken(wheel, f"more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB")
            for entry in entries:
                path = _path(wheel, entry)
                if path is not None:
                    _write(wheel, archive, entry, folder / path)
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise _broken(wheel, error) from error


def _path(wheel: Path, entry: zipfile.ZipInfo) -> PurePosixPath | None:
    """Returns an entry's path below the folder; None for an entry that is not imported."""
    name = entry.filename
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or ":" in name:
        raise _broken(wheel, f"{name!r} is a path that leads elsewhere")
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _broken(wheel, f"{name!r} is neither a file nor a folder")
    return None if entry.is_dir() else installed_path(name)


def _write(wheel: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with archive.open(entry) as source, target.open("wb") as file:
        while block := source.read(COPY_BYTES):
            written += len(block)
            if written > entry.file_size:
                raise _broken(wheel, f"{entry.filename!r} is larger than its entry's size")
            file.write(block)


def _move(temporary: Path, folder: Path) -> None:
    try:
        temporary.rename(folder)
    except OSError:
        if not folder.is_dir():  # otherwise another process was first, with the same content
            raise


def _broken(wheel: Path, reason: object) -> InvalidArgument:
    return InvalidArgument(f"{wheel.name}: not a wheel that can be used: {reason}", reason="PLUGIN_BROKEN")
