"""Loads the classes of one folder of jars apart from all others, as Connect's class loader for plugins does.

Source: `org.apache.kafka.connect.runtime.isolation.PluginClassLoader` of Kafka Connect 4.3, used unchanged: the
folder's own classes come first, Connect's API from its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from keelman.connect.config.plugin_keys import misfit
from keelman.connect.config.versions import VersionRangeError, requirement
from keelman.connect.errors import ConfigValueError
from keelman.connectors import registry
from keelman.connectors.java.jvm import java_class, jpype

LOADER = "org.apache.kafka.connect.runtime.isolation.PluginClassLoader"
VERSION = "plugin.version"
"""The key, after the step's prefix, for the wanted version of a converter, transform or predicate."""
T = TypeVar("T")


def fitting(class_name: str, versions: Mapping[str, T], version: str | None, key: str = VERSION) -> T:
    """Returns the entry of the latest version that fits the value `version` of `key`. `versions` has the latest first.
    Raises ConfigValueError."""
    try:
        within = requirement(version)
    except VersionRangeError as error:
        raise ConfigValueError(key, version, str(error)) from None
    if within is None:
        return next(iter(versions.values()))
    latest = within.latest(versions)
    if latest is None:
        raise ConfigValueError(key, version, misfit(class_name, within, [*versions]))
    return versions[latest]


class PluginLoader:
    """One folder's class loader. The virtual machine runs already."""

    def __init__(
        self,
        folder: Path,
        jars: Sequence[Path],
        aliases: Mapping[str, str] | None = None,
        others: Mapping[str, Callable[[], PluginLoader]] | None = None,
        versions: Callable[[str], Mapping[str, PluginLoader]] | None = None,
    ) -> None:
        """`jars` are the files to search for the plugin's classes, libraries last; `aliases` has full class names by
        short names; `others` loaders of other plugins by their classes; `versions` returns all loaders of a class, this
        one included, by its versions, the latest first."""
        self._aliases = aliases or {}
        self._others = others or {}
        self._versions = versions
        library = jpype()
        urls = [_url(jar) for jar in jars]
        array = library.JArray(java_class("java.net.URL"))(urls)
        system = java_class("java.lang.ClassLoader").getSystemClassLoader()
        self.folder = folder
        self.loader = java_class(LOADER)(_url(folder), array, system)

    def full_name(self, name: str) -> str:
        """Returns a class's full name, from its full name or an alias of the plugin's or of Connect's own."""
        trimmed = name.strip()
        return self._aliases.get(trimmed) or registry.full_name(trimmed) or trimmed

    def of(self, class_name: str, version: str | None = None, key: str = VERSION) -> PluginLoader:
        """Returns the loader of the plugin that has a converter, transform or predicate: another's, or this one.

        If `version` is given, that is the loader with the latest version that fits. Raises ConfigValueError if none
        does, and what a class throws when it is loaded for its version."""
        if version not in (None, "latest") and self._versions is not None:
            return fitting(class_name, self._versions(class_name), version, key)
        other = self._others.get(class_name)
        return self if other is None else other()

    def load(self, class_name: str) -> Any:
        """Loads a class by name. Raises Java's ClassNotFoundException, LinkageError."""
        own = self.of(class_name)
        with own.entered():
            return jpype().JClass(class_name, loader=own.loader)

    def has(self, class_name: str) -> bool:
        """Returns whether the folder has such a class."""
        return self.loader.getResource(f"{class_name.replace('.', '/')}.class") is not None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Makes its class loader that of the calling thread; used around each call into the plugin.

        Without it Debezium finds no class that its configuration names.
        """
        thread = java_class("java.lang.Thread").currentThread()
        before = thread.getContextClassLoader()
        thread.setContextClassLoader(self.loader)
        try:
            yield
        finally:
            thread.setContextClassLoader(before)


def _url(path: Path) -> Any:
    return java_class("java.io.File")(str(path)).toURI().toURL()
