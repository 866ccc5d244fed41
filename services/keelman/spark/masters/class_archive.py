"""The class data archive of Spark's JVM, which halves its start, with the jars that it was made of.

Java takes an archive only with jars of the same paths, times and sizes. So that all checkouts and environments with the
same PySpark share one, its jars are linked into the cache, and the JVM takes them from there. uv links its packages, so
their times are the same everywhere; pip sets new ones, and each environment of pip's has an archive of its own.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from keelman.model.errors import Internal
from keelman.runtime.home import cache_folder
from keelman.runtime.java.installation import Java

FILE = "classes.jsa"


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """`file` exists once the archive was made; `jars` is the folder whose jars it belongs to."""

    file: Path
    jars: Path

    @property
    def made(self) -> bool:
        """Whether a JVM can use it."""
        return self.file.is_file() and self.jars.is_dir()

    def class_path(self) -> str:
        """Returns the class path of a JVM that uses or makes it; the installed jars while they are not linked."""
        return ":".join(map(str, sorted(self.jars.glob("*.jar")) or spark_jars()))


def spark_jars() -> list[Path]:
    """Returns the jars of the installed PySpark, in a fixed order. Raises Internal when there are none."""
    spec = importlib.util.find_spec("pyspark")
    folder = Path(next(iter(spec.submodule_search_locations or ()))) / "jars" if spec else None
    jars = sorted(folder.glob("*.jar")) if folder else []
    if not jars:
        raise Internal(f"PySpark's jars are not there ({folder}): install keelman[spark] again")
    return jars


def archive_of(java: Java) -> ClassArchive:
    """Returns the archive for this Java and the installed PySpark, whether it was made or not; keelman.spark.archive
    makes it. Raises Internal."""
    jars = _Jars.installed()
    own = jars.own_archive(java)
    return own if own.made else jars.linked_archive(java)


def linked_archive(java: Java) -> ClassArchive:
    """Returns the same archive, to be made now: links the jars into the cache, and removes archives of removed
    environments. Where jars cannot be linked, as to another file system, it belongs to the installed jars. Raises
    Internal, OSError."""
    archive = archive_of(java)
    if archive.made:
        return archive
    root = archive.file.parent.parent
    root.mkdir(parents=True, exist_ok=True)
    _remove_unused(root)
    if archive.jars.is_dir():
        return archive
    jars = _Jars.installed()
    with tempfile.TemporaryDirectory(dir=root, prefix="linking-") as name:
        folder = Path(name) / "jars"
        folder.mkdir()
        try:
            for jar in jars.files:
                os.link(jar, folder / jar.name)
        except OSError:
            return jars.own_archive(java)
        archive.jars.parent.mkdir(exist_ok=True)
        try:
            os.replace(folder, archive.jars)
        except OSError:
            if not archive.jars.is_dir():
                raise  # else another process has linked them meanwhile
    return archive


@dataclass(frozen=True, slots=True)
class _Jars:
    """Jars, each with its size and its time."""

    files: Sequence[Path]
    stamps: Sequence[str]

    @staticmethod
    def installed() -> _Jars:
        files = spark_jars()
        return _Jars(files, [f"{status.st_size} {status.st_mtime_ns}" for status in (file.stat() for file in files)])

    def own_archive(self, java: Java) -> ClassArchive:
        """Returns the archive for the jars in their own folder."""
        return ClassArchive(self._folder(java, map(str, self.files)) / FILE, self.files[0].parent)

    def linked_archive(self, java: Java) -> ClassArchive:
        """Returns the archive for the jars in the cache."""
        folder = self._folder(java, [file.name for file in self.files])
        return ClassArchive(folder / FILE, folder / "jars")

    def _folder(self, java: Java, names: Iterable[str]) -> Path:
        jars = [f"{name} {stamp}" for name, stamp in zip(names, self.stamps, strict=True)]
        text = "\n".join([java.version, str(java.home), *jars])
        return cache_folder() / "spark" / hashlib.sha256(text.encode()).hexdigest()[:16]


def _remove_unused(root: Path) -> None:
    """Removes jars to which no other link exists, with their archives: their environment was removed. Files beside the
    folders are archives of former versions."""
    for file in root.glob("classes-*.jsa"):
        file.unlink()
    for folder in root.iterdir():
        jars = list((folder / "jars").glob("*.jar"))
        if jars and all(jar.stat().st_nlink == 1 for jar in jars):
            shutil.rmtree(folder, ignore_errors=True)
