"""Finds names and versions of plugins by their files' names and metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from keelman.workers.plugins.archive import BROKEN, Archive, ArchiveEntry

MAX_METADATA_BYTES = 1 << 20
_ENDINGS = (".tar.gz", ".tgz", ".zip", ".jar", ".whl")
_CLASSIFIERS = ("-plugin", "-all", "-jar-with-dependencies", "-shaded", "-uber", "-fat", "-package", "-dist", "-bin")
_NAMED = re.compile(r"(?P<name>.+?)[-_]v?(?P<version>\d[A-Za-z0-9_+]*(?:[.-][A-Za-z0-9_+]+)*)")
_POM = re.compile(r"META-INF/maven/[^/]+/(?P<artifact>[^/]+)/pom\.properties")


class NameAndVersion(NamedTuple):
    """The name and version of a plugin's file; empty if the file has none."""

    name: str
    version: str


def of_file_name(file_name: str) -> NameAndVersion:
    """Returns e.g. debezium-connector-postgres and 3.7.0.Final of
    debezium-connector-postgres-3.7.0.Final-plugin.tar.gz."""
    stem = next((file_name[: -len(e)] for e in _ENDINGS if file_name.lower().endswith(e)), file_name)
    if file_name.lower().endswith(".whl"):
        name, _, rest = stem.partition("-")
        return NameAndVersion(legal_name(name.replace("_", "-")), legal_version(rest.partition("-")[0]))
    for ending in _CLASSIFIERS:
        stem = stem.removesuffix(ending)
    match = _NAMED.fullmatch(stem)
    if match is None:
        return NameAndVersion(legal_name(stem), "")
    return NameAndVersion(legal_name(match["name"]), legal_version(match["version"]))


def legal_name(text: str) -> str:
    """Returns a text as a legal plugin name; empty if nothing is left of it."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower())[:63].strip("._-")


def legal_version(text: str) -> str:
    """Returns a text as a legal plugin version; empty if nothing is left of it."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text)[:63].strip("._+-")


def jar_version(archive: Archive, path: str) -> str:
    """Returns the version in a jar's manifest (Implementation-Version), else in its Maven metadata, else in its
    name."""
    stem, poms = path.rpartition("/")[2].removesuffix(".jar"), []
    for entry in archive.entries:
        if entry.path == "META-INF/MANIFEST.MF":
            if version := _manifest(text_of(archive, entry)):
                return version
        elif match := _POM.fullmatch(entry.path):
            poms.append((match["artifact"], entry))
    for artifact, entry in poms:
        if len(poms) == 1 or stem.startswith(artifact):
            for key, value in _properties(text_of(archive, entry)):
                if key == "version":
                    return legal_version(value)
    return of_file_name(f"{stem}.jar").version


def text_of(archive: Archive, entry: ArchiveEntry) -> str:
    """Returns a small file's text; empty if it is large or cannot be read."""
    if entry.size > MAX_METADATA_BYTES:
        return ""
    try:
        with archive.open(entry) as file:
            return file.read().decode(errors="replace")
    except BROKEN:
        return ""


def _manifest(text: str) -> str:
    main = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0].replace("\r\n ", "").replace("\n ", "")
    for line in main.splitlines():
        key, _, value = line.partition(":")
        if key.strip().lower() == "implementation-version":
            return legal_version(value.strip())
    return ""


def _properties(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if not line.startswith(("#", "!")):
            key, _, value = line.partition("=")
            yield key.strip(), value.strip()
