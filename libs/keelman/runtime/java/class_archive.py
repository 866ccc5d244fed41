"""Class data archives: Java maps one instead of reading and checking the classes of many jars at each start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keelman.runtime.home import cache_folder
from keelman.runtime.java.installation import Java


def archive_file(jars: Sequence[Path], java: Java) -> Path:
    """Returns the path of the archive of a lock's jars: one for each set of jars and each version of Java."""
    return cache_folder() / "classes" / f"{jars[0].parent.name}-java{java.version}.jsa"


def archive_options(archive: Path) -> tuple[str, ...]:
    """Returns the options that use the archive if it exists and is not an empty file, which marks a failed creation;
    Java itself ignores an archive that does not fit."""
    if not (archive.is_file() and archive.stat().st_size):
        return ()
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
