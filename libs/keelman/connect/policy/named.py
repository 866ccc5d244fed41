"""What the keys of a connector's configuration name: files, addresses, code, topics. Pure.

Keys of connectors that come with keelman are known. Those of others are recognised by their names, and by values that
begin as a URL of a file or a host does: rather one too many, where an installation limits them at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from keelman.connect.config.connector_keys import DEAD_LETTERS, OFFSETS

Config = Mapping[str, str | None]
ALWAYS_PATHS = frozenset({"file", "spark.path", "spark.option.path", "spark.option.paths", "spark.option.basepath"})
_PATH_KEY = re.compile(
    r"(?:^|[._-])(?:file|filename|path|dir|directory|folder|location|keystore|truststore|keytab|basepath)s?$"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_LOCAL_DATABASE = re.compile(
    r"jdbc:(?:sqlite|duckdb|ucanaccess|h2(?!:(?:tcp|ssl):)|hsqldb(?!:hsqls?:)|derby(?!://))", re.IGNORECASE
)
_OF_PATHS = ("/", ":", "~", "\\", "..")
"""One of these is in each path and URL that is judged under other keys."""
_GLOB = re.compile(r"[{\[*?\\]")
_OF_GLOBS = str.maketrans("", "", "\\{}[],")
_CODE_KEYS = frozenset({"spark.python.source", "spark.packages", "spark.jars", "spark.files", "spark.archives"})
_CODE_OPTION = re.compile(
    r"(?:^|\.)(?:class|classes|impl|jars|packages|files|archives|extensions|plugins|factory|driver)$|class$|(?:^|\.)catalog"
    r"|extrajavaoptions|extraclasspath|extralibrarypath|warehouse|(?:^|\.)hive\.|initscript"
)
FORMATS = frozenset({"avro", "binaryfile", "csv", "jdbc", "json", "orc", "parquet", "rate", "text", "xml"})
"""Spark's own formats; another is the name of a class, or of a Python data source."""
_HOST_KEY = re.compile(
    r"(?:^|[._-])(?:bootstrap\.servers|hosts?|hostname|address|addresses|endpoints?|contact\.points)$"
)
_IN_URL = re.compile(r"//([^/?#;\s]*)")


class Named(NamedTuple):
    """A value, or a part of it, and the key that names it."""

    key: str
    text: str


def paths_in(config: Config) -> Iterator[Named]:
    """Yields the local paths that a configuration names, as they are written; of a pattern of paths the folder in which
    it begins, and of a database in a local file its URL, which is no absolute path."""
    for key, value in _texts(config):
        always = key.lower() in ALWAYS_PATHS
        if not always and not any(sign in value for sign in _OF_PATHS):
            continue  # most values
        for text in [value] if key == "file" else _parts(value):
            part = text.strip()
            scheme = _SCHEME.match(part)
            if part.lower().startswith("file:"):
                yield Named(key, local_path(part))
            elif _LOCAL_DATABASE.match(part):
                yield Named(key, part)
            elif always and key != "file" and scheme is not None and "://" in part and urlsplit(part).netloc:
                continue  # elsewhere: its host is judged
            elif always or (_names_path(key) and (part.startswith(("/", "~", "\\")) or ".." in part)):
                yield Named(key, beginning(part) if key.startswith("spark.") else part)


def local_path(url: str) -> str:
    """Returns the path of a file: URL; the text as it is if it names a host, or if it means another path when it is
    decoded."""
    parts = urlsplit(url)
    path = parts.path
    return url if parts.netloc not in ("", "localhost") or unquote(path) != path else beginning(path)


def beginning(pattern: str) -> str:
    """Returns a path, of a pattern the folder in which it begins; the pattern itself, which is no absolute path then,
    if it may lead elsewhere."""
    found = _GLOB.search(pattern)
    if found is None:
        return pattern
    if ".." in pattern[found.start() :].translate(_OF_GLOBS):
        return f"pattern {pattern}"
    return pattern[: found.start()].rpartition("/")[0] or f"pattern {pattern}"


def code_in(config: Config) -> Iterator[Named]:
    """Yields what a configuration names to be loaded as code beside its plugin classes."""
    for key, text in _texts(config):
        foreign = key == "spark.format" and text.strip().lower() not in FORMATS
        if foreign or key in _CODE_KEYS or _names_code(key):
            yield Named(key, text)


def hosts_in(config: Config) -> Iterator[Named]:
    """Yields the addresses that a configuration names, in lower case: host or host:port, without users."""
    for key, value in _texts(config):
        if "//" in value:
            yield from (Named(key, host) for found in _IN_URL.findall(value) for host in _hosts(found))
        elif _names_host(key):
            yield from (Named(key, host) for host in _hosts(value))


def _hosts(text: str) -> Iterator[str]:
    """Yields the hosts of a list; not the scheme of a URL that follows in it."""
    for part in text.rpartition("@")[2].split(","):
        if (host := part.strip().lower()) and not host.endswith(":"):
            yield host


def topics_in(config: Config) -> Iterator[Named]:
    """Yields the topics that a configuration names by the keys of every connector and of those that come with keelman;
    topics that a connector finds, or computes, are judged where they are read or written."""
    keys = ["topics", "topic", DEAD_LETTERS, OFFSETS]
    if (config.get("spark.format") or "").strip().lower() == "kafka":
        keys += ["spark.option.subscribe", "spark.option.topic"]
    for key in keys:
        yield from (Named(key, topic) for text in (config.get(key) or "").split(",") if (topic := text.strip()))


def overrides_in(config: Config) -> Iterator[Named]:
    """Yields the client properties that a configuration overrides, each under its key."""
    for key, _ in _texts(config):
        client, found, name = key.partition(".override.")
        if found and client in ("producer", "consumer", "admin"):
            yield Named(key, name)


def classes_in(config: Config) -> Iterator[Named]:
    """Yields the classes of converters, transforms and predicates that a configuration names."""
    for key, text in _texts(config):
        step = key.startswith(("transforms.", "predicates.")) and key.endswith(".type")
        if step or key in ("key.converter", "value.converter", "header.converter"):
            yield Named(key, text.strip())


@lru_cache(maxsize=10_000)  # the keys of many connectors are the same
def _names_path(key: str) -> bool:
    return bool(_PATH_KEY.search(_CAMEL.sub(".", key).lower()))


@lru_cache(maxsize=10_000)
def _names_host(key: str) -> bool:
    return bool(_HOST_KEY.search(_CAMEL.sub(".", key).lower()))


@lru_cache(maxsize=10_000)
def _names_code(key: str) -> bool:
    """Returns whether an option or a setting of Spark's names code, or a setting is not of its SQL."""
    if not key.startswith(("spark.option.", "spark.conf.")):
        return False
    option = key.partition(".")[2].partition(".")[2].lower()
    return bool(_CODE_OPTION.search(option)) or (key.startswith("spark.conf.") and not option.startswith("spark.sql."))


def _texts(config: Config) -> Iterator[tuple[str, str]]:
    return ((key, value) for key, value in config.items() if value and value.strip())


def _parts(value: str) -> list[str]:
    """Returns the parts of a list. A comma inside of braces, behind which they are closed, separates nothing."""
    parts, end, is_inside = [], len(value), False
    for at in range(end - 1, -1, -1):
        if value[at] in "{}":
            is_inside = value[at] == "}"
        elif value[at] == "," and not is_inside:
            parts.append(value[at + 1 : end])
            end = at
    return [value[:end], *reversed(parts)]
