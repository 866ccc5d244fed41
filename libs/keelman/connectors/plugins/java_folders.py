"""Java plugins below a worker's `plugin.path`: their jars, and the inspection's results, kept for the next start.

As with Connect each folder in a folder of the path, and each jar in one, is a plugin that is loaded apart from all
others. A plugin's description is written to a folder of the cache: plugin hosts and slots get that folder, so that
they inspect no jar themselves.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from keelman.connect.config.definition import ConfigDef
from keelman.connect.config.plugin_kinds import PluginType
from keelman.connectors import registry
from keelman.model.errors import InvalidArgument
from keelman.model.plugins.plugin import PluginClass
from keelman.runtime.home import cache_folder
from keelman.runtime.version import version as own_version

DESCRIPTION = "java_plugin.json"
ANSWERS = "answers.json"
"""The file with the classes' own answers from when they were loaded: beside the description, once that was done."""
FORMAT = 2
"""The format of the description: one of another format is written again."""
CONNECTORS = ("source", "sink")
_KINDS = frozenset(kind.value for kind in PluginType)
UNDEFINED = "undefined"
"""Connect's word for the version of a class that names none."""
StepKeys = Callable[[str, str], ConfigDef]
"""Returns the keys of a class, of this kind."""


@dataclass(frozen=True, slots=True)
class JavaPlugin:
    """One plugin location with its jars and classes. `folder` is its place in the cache; `libraries` are jars behind
    its own.

    Once its classes were loaded (`asked`), they have the versions that they report themselves, and classes that
    cannot be loaded are `broken`, with the reason. `refused` are connectors that use internals of Kafka Connect that
    keelman lacks, with the reason too; `inner` has the internals that a connector uses, so that it gets those that
    exist here.
    """

    name: str
    version: str
    location: Path
    folder: Path
    jars: tuple[Path, ...]
    libraries: tuple[Path, ...]
    classes: tuple[PluginClass, ...]
    problems: tuple[str, ...] = ()
    others: tuple[Path, ...] = ()
    """Cache folders of plugins whose converters, transforms and predicates its connectors can name."""
    asked: bool = False
    broken: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    inner: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def type_of(self, class_name: str) -> str:
        """Returns the class's type in Connect's word; empty for an unknown class."""
        return next((plugin_class.type for plugin_class in self.classes if plugin_class.class_name == class_name), "")

    @property
    def connectors(self) -> tuple[PluginClass, ...]:
        """Its sources and sinks."""
        return tuple(plugin_class for plugin_class in self.classes if plugin_class.type in CONNECTORS)

    @property
    def steps(self) -> tuple[PluginClass, ...]:
        """Its converters, transforms and predicates."""
        return tuple(plugin_class for plugin_class in self.classes if plugin_class.type not in CONNECTORS)

    def usable_steps(self, keys: StepKeys) -> Iterator[registry.PluginStep]:
        """Yields its loadable converters, transforms and predicates, in the registry's form."""
        for step in self.steps:
            if not self.problem_of(step.class_name):
                asks = functools.partial(keys, step.class_name, step.type)
                yield registry.PluginStep(step.class_name, PluginType(step.type), step.version or UNDEFINED, asks)

    def problem_of(self, class_name: str) -> str:
        """Returns the reason why the class cannot be used; empty when it can, or was not loaded yet."""
        return next((problem for name, problem in (*self.refused, *self.broken) if name == class_name), "")

    def inner_of(self, class_name: str) -> tuple[str, ...]:
        """Returns the internal classes of Kafka Connect that a connector uses."""
        return next((inner for name, inner in self.inner if name == class_name), ())


def described(location: Path, libraries: Sequence[Path] = ()) -> JavaPlugin | None:
    """Returns the Java plugin in a folder or a jar; None without jars. Reads all jars if they are new or have changed.

    `libraries` are folders whose jars it finds behind its own. Raises InvalidArgument (PLUGIN_BROKEN) for a jar that
    cannot be used, OSError.
    """
    jars = [location] if location.is_file() else _jars_of(location)
    if not jars:
        return None
    more = [jar for folder in libraries for jar in _jars_of(folder)]
    folder = cache_folder() / "plugins" / f"java-{_digest([*jars, None, *more])}"
    with suppress(OSError, ValueError, KeyError):
        return read(folder)
    from keelman.workers.plugins.inspection import inspect, inspect_folder  # noqa: PLC0415  (only new jars wait for it)

    inspection = inspect(location) if location.is_file() else inspect_folder(location)
    classes = [plugin_class for plugin_class in inspection.classes if plugin_class.type in _KINDS]
    if not classes and inspection.problems and location.is_file():
        raise InvalidArgument(f"{location}: {'; '.join(inspection.problems)}", reason="PLUGIN_BROKEN")
    versions = [plugin_class.version for plugin_class in classes if plugin_class.version]
    name = location.name.removesuffix(".jar")
    document = {
        "name": inspection.name or name,
        "version": inspection.version or (versions[0] if versions else ""),
        "location": str(location),
        "jars": [str(jar) for jar in jars],
        "libraries": [str(jar) for jar in more],
        "classes": [[c.class_name, c.type, c.version, c.language, c.path] for c in classes],
        "problems": list(inspection.problems),
        "refused": [list(refusal) for refusal in inspection.refused.items()],
        "inner": [[name, list(inner)] for name, inner in inspection.inner.items()],
    }
    _write(folder, document)
    return read(folder)


def beside(plugin: JavaPlugin, others: Sequence[JavaPlugin]) -> JavaPlugin:
    """Returns the plugin for a worker that has these other plugins too, so that its connectors can name their steps.
    Raises OSError."""
    folders = [other.folder for other in others if other.steps and other.folder != plugin.folder]
    if not folders:
        return plugin
    digest = hashlib.sha256("\0".join(map(str, [plugin.folder, *folders])).encode()).hexdigest()[:32]
    folder = plugin.folder.with_name(f"java-{digest}")
    if not is_description(folder):
        _write(folder, {"plugin": str(plugin.folder), "others": list(map(str, folders))})
    return replace(plugin, folder=folder, others=tuple(folders))


def read(folder: Path) -> JavaPlugin:
    """Reads a plugin from its folder in the cache. Raises OSError, ValueError, KeyError."""
    document = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    if "plugin" in document:
        return replace(read(Path(document["plugin"])), folder=folder, others=tuple(map(Path, document["others"])))
    java_plugin = JavaPlugin(
        document["name"],
        document["version"],
        Path(document["location"]),
        folder,
        tuple(map(Path, document["jars"])),
        tuple(map(Path, document["libraries"])),
        tuple(PluginClass(*entry) for entry in document["classes"]),
        tuple(document["problems"]),
        refused=tuple((name, reason) for name, reason in document["refused"]),
        inner=tuple((name, tuple(classes)) for name, classes in document["inner"]),
    )
    with suppress(OSError, ValueError, KeyError, TypeError):
        return _with_answers(java_plugin, json.loads((folder / ANSWERS).read_text(encoding="utf-8")))
    return java_plugin


def keep_answers(plugin: JavaPlugin, answers: Sequence[Mapping[str, str]]) -> JavaPlugin:
    """Returns the plugin with its classes' answers ({"class", "type", "version", "problem"}), and stores these for the
    next start."""
    answered = _with_answers(plugin, answers)
    with suppress(OSError, ValueError, KeyError):  # then the next start loads them again
        document = json.loads((plugin.folder / DESCRIPTION).read_text(encoding="utf-8"))
        own = Path(document.get("plugin", plugin.folder))
        temporary = own / f".{ANSWERS}.{os.getpid()}"
        temporary.write_text(json.dumps(list(answers)), encoding="utf-8")
        temporary.rename(own / ANSWERS)
    return answered


def _with_answers(plugin: JavaPlugin, answers: Sequence[Mapping[str, str]]) -> JavaPlugin:
    versions = {(answer["class"], answer["type"]): answer["version"] for answer in answers if not answer["problem"]}
    classes = [
        replace(plugin_class, version=versions.get((plugin_class.class_name, plugin_class.type), plugin_class.version))
        for plugin_class in plugin.classes
    ]
    broken = {answer["class"]: answer["problem"] for answer in answers if answer["problem"]}
    return replace(plugin, classes=tuple(classes), asked=True, broken=tuple(broken.items()))


def is_description(folder: Path) -> bool:
    """Returns whether a folder is one of the cache, with a Java plugin's description."""
    return (folder / DESCRIPTION).is_file()


def _jars_of(folder: Path) -> list[Path]:
    return sorted(Path(top, name) for top, _, names in os.walk(folder) for name in names if name.endswith(".jar"))


def _digest(jars: Sequence[Path | None]) -> str:
    digest = hashlib.sha256(f"{own_version()} {FORMAT}".encode())
    for jar in jars:
        if jar is None:
            digest.update(b"\0\0")
            continue
        stat = jar.stat()
        digest.update(f"{jar}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:32]


def _write(folder: Path, document: Mapping[str, object]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        (temporary / DESCRIPTION).write_text(json.dumps(document), encoding="utf-8")
        temporary.chmod(0o755)
        try:
            temporary.rename(folder)
        except OSError:
            if not is_description(folder):  # otherwise another process was first, with the same content
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
