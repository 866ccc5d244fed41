"""Finds the connector plugins among the classes of jars: by service files and by class files.

The rules for plugin classes are Connect's own (org.apache.kafka.connect.runtime.isolation.PluginUtils, 4.3): its API
comes from the worker, whatever a plugin carries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from keelman.model.plugins.plugin import PluginClass
from keelman.workers.plugins.archive import BROKEN, Archive, ArchiveEntry
from keelman.workers.plugins.class_file import ClassFile, InvalidClassFile, named_classes, read_class
from keelman.workers.plugins.inner_classes import RUNTIME, InnerClasses, is_inner
from keelman.workers.plugins.versions import jar_version

SERVICES = {
    "org.apache.kafka.connect.sink.SinkConnector": "sink",
    "org.apache.kafka.connect.source.SourceConnector": "source",
    "org.apache.kafka.connect.transforms.Transformation": "transformation",
    "org.apache.kafka.connect.transforms.predicates.Predicate": "predicate",
    "org.apache.kafka.connect.storage.Converter": "converter",
    "org.apache.kafka.connect.storage.HeaderConverter": "header_converter",
}
"""The classes and interfaces that plugin classes extend or implement, with the resulting type."""
_CONNECTS_OWN = {
    "org/apache/kafka/connect/json/JsonConverter": ("converter", "header_converter"),
    "org/apache/kafka/connect/storage/StringConverter": ("converter", "header_converter"),
    "org/apache/kafka/connect/storage/SimpleHeaderConverter": ("header_converter",),
    "org/apache/kafka/connect/file/FileStreamSourceConnector": ("source",),
    "org/apache/kafka/connect/file/FileStreamSinkConnector": ("sink",),
    "org/apache/kafka/connect/mirror/MirrorSourceConnector": ("source",),
}
"""Classes of Connect's jars that plugins extend, without carrying them."""
_OHARAS = {
    f"oharastream/ohara/kafka/connector/{name}": (kind,)
    for kind, names in (
        ("source", ("RowSourceConnector", "csv/CsvSourceConnector")),
        ("sink", ("RowSinkConnector", "csv/CsvSinkConnector")),
    )
    for name in names
}
"""Classes of Ohara's that its users' connectors extend without carrying them: they come from a shared library."""
_BESIDE_CONNECT = {
    "org/apache/kafka/clients/producer/Partitioner": ("partitioner",),
    "oharastream/ohara/kafka/RowPartitioner": ("partitioner",),
    "oharastream/ohara/kafka/RowDefaultPartitioner": ("partitioner",),
    "oharastream/ohara/stream/Stream": ("stream",),
}
"""Types whose classes are listed for a file, though Connect does not load them as plugins."""
_CONNECTS_ROOMS = (
    ("org/apache/kafka/connect/transforms/predicates/", ("predicate",)),
    ("org/apache/kafka/connect/transforms/util/", ()),
    ("org/apache/kafka/connect/transforms/", ("transformation",)),
    ("org/apache/kafka/connect/converters/", ("converter", "header_converter")),
)
"""Packages of Connect's jars, and the types of their classes."""
_ROOTS = {name.replace(".", "/"): (kind,) for name, kind in SERVICES.items()} | _CONNECTS_OWN | _OHARAS
_ROOTS |= _BESIDE_CONNECT
_FROM_THE_WORKER = re.compile(
    r"(?:java|javax\.crypto|javax\.management|javax\.net|javax\.sql|org\.slf4j|org\.w3c\.dom|org\.xml\.sax|"
    r"org\.apache\.kafka(?!\.connect\.(?:transforms\.(?!Transformation$|predicates\.Predicate$)|json\.|file\.|mirror\.|"
    r"converters\.|storage\.(?:StringConverter|SimpleHeaderConverter)$)))(?:\.|$)"
)
_WORKERS_ROOMS = ("java/", "javax/", "org/apache/kafka/", "org/slf4j/")
_SERVICE = "META-INF/services/"
_OBJECT = "java/lang/Object"
MAX_CLASS_BYTES = 8 << 20
MAX_SERVICE_BYTES = 1 << 20
MAX_CLASSES = 400_000
_NAME = re.compile(r"[\w$]+(\.[\w$]+)*")
_INNER = RUNTIME.encode()
_INNER_TEXT = RUNTIME.replace("/", ".").encode()


class _Class(NamedTuple):
    """A class of a jar: its super class and interfaces, and its place."""

    parents: tuple[str, ...]
    can_be_made: bool
    java: int
    jar: int


@dataclass(slots=True)
class JavaClasses:
    """The classes of several jars, which may extend each other's. `java` is the lowest release that workers run; with
    `follows` it notes which classes name which, for `inner`."""

    java: int
    follows: bool = False
    looks_inside: bool = False
    """Whether a class names an internal class of Connect: then it may be worth reading all again, with `follows`."""
    problems: list[str] = field(default_factory=list)
    _classes: dict[str, _Class] = field(default_factory=dict)
    _services: dict[tuple[str, str], int] = field(default_factory=dict)
    """Classes that service files name, with the type; the value is the jar of the service file."""
    _jars: list[tuple[str, str]] = field(default_factory=list)
    """Path and version of each jar."""
    _inner: InnerClasses = field(default_factory=InnerClasses)

    def inner(self, plugin_classes: Iterable[PluginClass]) -> dict[str, Mapping[str, str]]:
        """Returns, by connector, the internal classes of Connect that it reaches, each with the class that names it;
        only connectors that reach some."""
        names = sorted(
            {plugin_class.class_name for plugin_class in plugin_classes if plugin_class.type in ("source", "sink")}
        )
        reached = {name: self._inner.reached(name.replace(".", "/")) for name in names}
        return {name: inner for name, inner in reached.items() if inner}

    def add(self, archive: Archive, path: str) -> None:
        """Reads a jar. Class files that are invalid or need a newer Java are noted as a problem."""
        jar = len(self._jars)
        self._jars.append((path, jar_version(archive, path)))
        broken: list[str] = []
        newer: list[tuple[int, str]] = []
        for entry in archive.entries:
            name = entry.path
            if name.endswith(".class"):
                if not name.startswith("META-INF/") and not name.endswith("-info.class"):
                    self._add_class(archive, entry, jar, broken, newer)
            elif name.startswith(_SERVICE) and name[len(_SERVICE) :] in SERVICES:
                self._add_service(archive, entry, jar)
        where = path or "the jar"
        if broken:
            self.problems.append(f"{where}: {_count(broken, 'class file')} cannot be read, e.g. {broken[0]}")
        if newer:
            java, name = max(newer)
            classes = _count(newer, "class")
            need = "need" if len(newer) > 1 else "needs"
            self.problems.append(f"{where}: {classes} {need} Java {java} ({name}); workers run Java {self.java}")

    def found(self) -> list[PluginClass]:
        """Returns the plugin classes, sorted. Classes that service files name in vain are added to the problems."""
        plugin_classes: set[PluginClass] = set()
        types: dict[str, frozenset[str]] = {}
        for name, java_class in self._classes.items():
            if java_class.parents and self._may_be_used(name, java_class):
                plugin_classes |= self._plugin_classes(name, java_class, self._types(name, types))
        for (dotted, kind), jar in self._services.items():
            name = dotted.replace(".", "/")
            former = self._classes.get(name)
            if reason := self._judged(dotted, kind, types):
                self.problems.append(f"{self._jars[jar][0]}: its service file names {dotted[:200]}, {reason}")
                if former is not None and self._missing(name) and self._may_be_used(name, former):
                    plugin_classes |= self._plugin_classes(
                        name, former, [kind]
                    )  # a library that all plugins share may have it
        return sorted(plugin_classes)

    def _may_be_used(self, name: str, java_class: _Class) -> bool:
        return (
            java_class.can_be_made
            and java_class.java <= self.java
            and not _FROM_THE_WORKER.match(name.replace("/", "."))
        )

    def _plugin_classes(self, name: str, java_class: _Class, types: Iterable[str]) -> set[PluginClass]:
        path, version = self._jars[java_class.jar]
        return {PluginClass(name.replace("/", "."), kind, version, "java", path) for kind in types}

    def _add_class(
        self, archive: Archive, entry: ArchiveEntry, jar: int, broken: list[str], newer: list[tuple[int, str]]
    ) -> None:
        try:
            if entry.size > MAX_CLASS_BYTES:
                raise InvalidClassFile(f"{entry.size} bytes")
            with archive.open(entry) as file:
                read = read_class(data := file.read())
                self._look_inside(read.name, data)
        except (*BROKEN, InvalidClassFile) as error:
            broken.append(f"{entry.path} ({error})")
            return
        if read.java > self.java:
            newer.append((read.java, read.name.replace("/", ".")))
        self._keep(read, jar)

    def _look_inside(self, name: str, data: bytes) -> None:
        """Notes whether a class names internal classes of Connect. Classes that the worker provides are skipped: they
        are loaded from the worker, whatever the jars have."""
        if self.follows or ((_INNER in data or _INNER_TEXT in data) and not self.looks_inside):
            if _FROM_THE_WORKER.match(name.replace("/", ".")):
                return
            named = named_classes(data, _INNER_TEXT)
            self.looks_inside = self.looks_inside or any(map(is_inner, named))
            if self.follows:
                self._inner.note(name, named)

    def _keep(self, read: ClassFile, jar: int) -> None:
        parents = tuple(p for p in read.parents if p != _OBJECT)
        if len(self._classes) < MAX_CLASSES:
            self._classes.setdefault(read.name, _Class(parents, read.can_be_made, read.java, jar))

    def _add_service(self, archive: Archive, entry: ArchiveEntry, jar: int) -> None:
        kind = SERVICES[entry.path[len(_SERVICE) :]]
        try:
            if entry.size > MAX_SERVICE_BYTES:
                raise ValueError(f"{entry.size} bytes")
            with archive.open(entry) as file:
                text = file.read().decode()
        except BROKEN as error:
            self.problems.append(f"{self._jars[jar][0]}: {entry.path} cannot be read: {error}")
            return
        for line in text.splitlines():
            if name := line.partition("#")[0].strip():
                self._services.setdefault((name, kind), jar)

    def _types(self, name: str, cache: dict[str, frozenset[str]]) -> frozenset[str]:
        """Returns a class's types, by all that it extends and implements, as far as that is in the jars or Connect's
        own."""
        if name in cache:
            return cache[name]
        order, stack, seen = [], [name], {name}
        while stack:
            order.append(class_name := stack.pop())
            for parent in self._parents(class_name):
                if parent not in seen:
                    seen.add(parent)
                    stack.append(parent)
        cache[name] = frozenset(kind for name in order for kind in self._own_types(name))
        return cache[name]

    def _own_types(self, name: str) -> tuple[str, ...]:
        """Returns a class's own types: those of Connect's class of this name if it is not in the jars."""
        if name in _ROOTS or name in self._classes:
            return _ROOTS.get(name, ())
        return next((types for room, types in _CONNECTS_ROOMS if name.startswith(room)), ())

    def _missing(self, name: str) -> str:
        """Returns a class that this one extends, directly or not, and that neither the jars nor the worker have; or
        empty."""
        stack, seen = [name], {name}
        while stack:
            class_name = stack.pop()
            if class_name not in self._classes and not class_name.startswith(_WORKERS_ROOMS):
                return class_name.replace("/", ".")
            for parent in self._parents(class_name):
                if parent not in seen:
                    seen.add(parent)
                    stack.append(parent)
        return ""

    def _parents(self, name: str) -> Iterable[str]:
        java_class = self._classes.get(name)
        return () if java_class is None or name in _ROOTS else java_class.parents

    def _judged(self, dotted: str, kind: str, types: dict[str, frozenset[str]]) -> str:
        """Returns the problem of a class that a service file names, as the end of a sentence; empty if nothing is."""
        name = dotted.replace(".", "/")
        java_class = self._classes.get(name)
        if java_class is None or _FROM_THE_WORKER.match(dotted):
            problem = "" if _FROM_THE_WORKER.match(dotted) else "which is in none of the jars"
            return problem if _NAME.fullmatch(dotted) else "which is no name of a class"
        if java_class.java > self.java:
            return f"which needs Java {java_class.java}; workers run Java {self.java}"
        if kind not in self._types(name, types):
            missing = self._missing(name)
            return f"which extends {missing}, which is in none of the jars" if missing else f"which is no {_said(kind)}"
        if not java_class.can_be_made:
            return "which cannot be made: it is abstract, not public or has no public constructor without arguments"
        return ""


def _said(kind: str) -> str:
    return kind.replace("_", " ")


def _count(items: list[object] | list[str] | list[tuple[int, str]], what: str) -> str:
    plural = what + ("es" if what.endswith("s") else "s")
    return f"1 {what}" if len(items) == 1 else f"{len(items)} {plural}"
