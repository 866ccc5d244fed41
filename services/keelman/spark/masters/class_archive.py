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


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """`file` is there once it was made; `jars` are the folder whose jars it is for."""

    file: Path
    jars: Path

    @property
    def made(self) -> bool:
        """Whether a JVM can use it."""
        return self.file.is_file() and self.jars.is_dir()

    def class_path(self) -> str:
        """Of a JVM that uses it."""
        return class_path(sorted(self.jars.glob("*.jar")))


def spark_jars() -> list[Path]:
    """The jars of the installed PySpark, in a fixed order. Raises Internal when there are none."""
    found = importlib.util.find_spec("pyspark")
    folder = Path(next(iter(found.submodule_search_locations or ()))) / "jars" if found else None
    jars = sorted(folder.glob("*.jar")) if folder else []
    if not jars:
        raise Internal(f"PySpark's jars are not there ({folder}): install keelman[spark] again")
    return jars


def class_path(jars: Sequence[Path]) -> str:
    """As Java takes it."""
    return ":".join(map(str, jars))


def archive_of(java: Java) -> ClassArchive:
    """That of this Java and the installed PySpark, made or not; see keelman.spark.archive. Raises Internal."""
    jars = spark_jars()
    own = _own(java, jars)
    if own.made:
        return own
    linked = _folder(java, jars, [jar.name for jar in jars])
    return ClassArchive(linked / "classes.jsa", linked / "jars")


def linked_archive(java: Java) -> ClassArchive:
    """The same, to be made now: links the jars into the cache, and removes archives of PySparks that are gone. Where
    the cache is on another file system the archive is for the jars in their own folder. Raises Internal, OSError."""
    found, jars = archive_of(java), spark_jars()
    if found.made:
        return found
    root = found.file.parent.parent
    root.mkdir(parents=True, exist_ok=True)
    _remove_unused(root)
    if found.jars.is_dir():
        return found
    with tempfile.TemporaryDirectory(dir=root, prefix="linking-") as name:
        made = Path(name) / "jars"
        made.mkdir()
        try:
            for jar in jars:
                os.link(jar, made / jar.name)
        except OSError:
            return _own(java, jars)
        found.jars.parent.mkdir(exist_ok=True)
        try:
            os.replace(made, found.jars)
        except OSError:
            if not found.jars.is_dir():
                raise  # else another process has linked them meanwhile
    return found


def _own(java: Java, jars: Sequence[Path]) -> ClassArchive:
    """That for the jars where they are."""
    return ClassArchive(_folder(java, jars, map(str, jars)) / "classes.jsa", jars[0].parent)


def _folder(java: Java, jars: Sequence[Path], names: Iterable[str]) -> Path:
    found = zip(names, (jar.stat() for jar in jars), strict=True)
    text = "\n".join([java.version, str(java.home), *(f"{name} {s.st_size} {s.st_mtime_ns}" for name, s in found)])
    return cache_folder() / "spark" / hashlib.sha256(text.encode()).hexdigest()[:16]


def _remove_unused(root: Path) -> None:
    """Jars that nothing but the cache has any more are those of an environment that was removed. Archives beside their
    folders are of former versions."""
    for file in root.glob("classes-*.jsa"):
        file.unlink()
    for folder in root.iterdir():
        jars = list((folder / "jars").glob("*.jar"))
        if jars and all(jar.stat().st_nlink == 1 for jar in jars):
            shutil.rmtree(folder, ignore_errors=True)
