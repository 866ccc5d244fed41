"""Loads the classes of one folder of jars apart from all others, as Connect's class loader for plugins does.

Source: `org.apache.kafka.connect.runtime.isolation.PluginClassLoader` of Kafka Connect 4.3, which is used as it is: the
folder's own classes come first, Connect's API from its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keelman.connectors import registry
from keelman.connectors.java.jvm import java_class, jpype

LOADER = "org.apache.kafka.connect.runtime.isolation.PluginClassLoader"


class PluginLoader:
    """One folder's class loader. The machine runs already."""

    def __init__(
        self,
        folder: Path,
        jars: Sequence[Path],
        aliases: Mapping[str, str] | None = None,
        others: Mapping[str, Callable[[], PluginLoader]] | None = None,
    ) -> None:
        """`jars` are all files that the plugin's classes are looked for in, libraries last; `aliases` short names of
        classes with the full ones; `others` classes of other plugins with these plugins' loaders."""
        self._aliases = aliases or {}
        self._others = others or {}
        library = jpype()
        urls = [_url(jar) for jar in jars]
        array = library.JArray(java_class("java.net.URL"))(urls)
        system = java_class("java.lang.ClassLoader").getSystemClassLoader()
        self.folder = folder
        self.loader = java_class(LOADER)(_url(folder), array, system)

    def full_name(self, name: str) -> str:
        """The class that is named: by its full name, or by an alias of the plugin's or of Connect's own."""
        found = name.strip()
        return self._aliases.get(found) or registry.full_name(found) or found

    def of(self, class_name: str) -> PluginLoader:
        """The loader of the plugin that has a converter, transform or predicate: another's, or this one."""
        other = self._others.get(class_name)
        return self if other is None else other()

    def load(self, class_name: str) -> Any:
        """A class of it by name. Raises Java's ClassNotFoundException, LinkageError."""
        found = self.of(class_name)
        with found.entered():
            return jpype().JClass(class_name, loader=found.loader)

    def has(self, class_name: str) -> bool:
        """Whether there is such a class in it."""
        return self.loader.getResource(f"{class_name.replace('.', '/')}.class") is not None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Around each call into the plugin, on the calling thread: its class loader is the thread's meanwhile.

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
