"""Other programs' changes of a file that a connector reads or writes."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from support.connectors.sunk_file import STRANGE, line

FILLER = b"#" * len(line(0)) + b"\n"
Touch = Callable[[Path], None]


def leave(path: Path) -> None:
    """Does nothing."""


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(STRANGE)


def truncate(path: Path) -> None:
    os.truncate(path, 0)


def rename(path: Path) -> None:
    """Renames the file as logrotate does, without a new file."""
    _shift(path)
    path.rename(beside(path, 1))


def rotate(path: Path) -> None:
    """Rotates as logrotate does with `create`."""
    rename(path)
    path.touch()


def rotate_twice(path: Path) -> None:
    rotate(path)
    append(path)
    rotate(path)


def rotate_away(path: Path) -> None:
    """Rotates as logrotate does with `olddir`."""
    (path.parent / "old").mkdir(exist_ok=True)
    path.rename(path.parent / "old" / path.name)
    path.touch()


def compress(path: Path) -> None:
    """Rotates as logrotate does with `compress`."""
    rotate(path)
    old = beside(path, 1)
    with old.open("rb") as plain, gzip.open(f"{old}.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    os.utime(f"{old}.gz", ns=(old.stat().st_atime_ns, old.stat().st_mtime_ns))
    old.unlink()


def copytruncate(path: Path) -> None:
    _shift(path)
    shutil.copy2(path, beside(path, 1))
    os.truncate(path, 0)


def remove(path: Path) -> None:
    path.unlink()


def rewrite(path: Path) -> None:
    """Writes other content of the same length, in place."""
    path.write_bytes(FILLER * (path.stat().st_size // len(FILLER)))


def replace(path: Path) -> None:
    """Replaces the file by another of its name."""
    new = path.with_name("new")
    new.write_bytes(STRANGE * 3)
    new.replace(path)


def restore(path: Path) -> None:
    """Restores an older state from a backup, in a file of its own."""
    backup = path.with_name("backup")
    backup.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    backup.replace(path)


def chmod(path: Path) -> None:
    path.chmod(0o400)


def move_to_another_file_system(path: Path) -> None:
    """Copies the file, then removes it."""
    (path.parent / "elsewhere").mkdir(exist_ok=True)
    shutil.copy2(path, path.parent / "elsewhere" / path.name)
    path.unlink()


def beside(path: Path, number: int) -> Path:
    """The name of a file after this number of rotations."""
    return path.with_name(f"{path.name}.{number}")


def _shift(path: Path) -> None:
    """Frees the name `.1`."""
    for number in range(99, 0, -1):
        for packed in ("", ".gz"):
            old = Path(f"{beside(path, number)}{packed}")
            if old.exists():
                old.rename(f"{beside(path, number + 1)}{packed}")
