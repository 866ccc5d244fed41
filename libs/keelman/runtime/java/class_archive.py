"""Class data archives: Java maps one instead of reading and checking the classes of many jars at each start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keelman.runtime.home import cache_folder
from keelman.runtime.java.installation import Java


def archive_file(jars: Sequence[Path], java: Java) -> Path:
    """Where the archive of a lock's jars is kept: one for each set of jars and each version of Java."""
    return cache_folder() / "classes" / f"{jars[0].parent.name}-java{java.version}.jsa"


def archive_options(archive: Path) -> tuple[str, ...]:
    """The options that use the archive if it is there, and is no empty file, which remembers that it could not be made;
    Java itself goes on without one that does not fit."""
    if not (archive.is_file() and archive.stat().st_size):
        return ()
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
