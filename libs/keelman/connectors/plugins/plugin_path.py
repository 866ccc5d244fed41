"""Third-party connectors: finds plugins below a worker's `plugin.path` by their metadata, and loads them in slots.

Java plugins are folders with jars, and jars (`java_folders`). A Python plugin is a wheel, a folder of wheels (the
plugin and its dependencies), or a folder that wheels were installed into. Its entry points of the group
`keelman.connectors` are its connectors, each a name and module:Class:

    [keelman.connectors]
    com.acme.WeatherSourceConnector = acme_connectors.weather:WeatherSource
"""

from __future__ import annotations

import email
import importlib
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path

from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Connector, Direction
from keelman.connectors import registry
from keelman.connectors.plugins import java_folders
from keelman.connectors.plugins.java_folders import JavaPlugin
from keelman.connectors.plugins.wheels import entry_points_text, unpacked
from keelman.model.errors import InvalidArgument
from keelman.runtime.error_text import error_text
from keelman.runtime.logs.logging import get_logger

GROUP = "keelman.connectors"
FILES = (".whl", ".jar")

COPIES_WITH = {Direction.SOURCE: ("open_reader",), Direction.SINK: ("open_writer", "open_task_writer", "data_sink")}
"""The methods that a connector copies with: it defines at least one."""

_ENTRY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_log = get_logger()


class PluginFault(ConnectError):
    """A plugin's class cannot be used: `where` names plugin and class, `reason` gives the reason."""

    tolerable = False

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where} {reason}")
        self.where, self.why = where, reason


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """One distribution with connectors: `classes` are entry points by name, `folder` goes on sys.path,
    `source` is the wheel, the jar or the folder that was found below the plugin path.

    For a Java plugin `classes` are its connectors with their types, and `folder` holds its description.
    """

    name: str
    version: str
    folder: Path
    classes: Mapping[str, str]
    source: Path = Path()
    java: JavaPlugin | None = None

    def names(self) -> dict[str, str]:
        """Returns full names by all names that Connect allows: full, simple, and without `Connector`."""
        names: dict[str, str] = {}
        for full in self.classes:
            if full.startswith(registry.JAVA):
                names[full] = full
                continue
            simple = full.rpartition(".")[2]
            names |= {simple.removesuffix("Connector"): full, simple: full, full: full}
        return names

    def __str__(self) -> str:
        return f"{self.name} {self.version}".rstrip()


@dataclass(frozen=True, slots=True)
class BrokenPlugin:
    """A path that looks like a plugin and cannot be used, with the reason."""

    path: Path
    message: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """The plugins of a plugin path, found by the names of their classes."""

    plugins: Sequence[InstalledPlugin] = ()
    broken: Sequence[BrokenPlugin] = ()

    def find(self, class_name: str) -> tuple[InstalledPlugin, str] | None:
        """Returns the latest plugin that has the class under any of its names, and the entry point's name."""
        matches = [(p, p.names()[class_name.strip()]) for p in self.plugins if class_name.strip() in p.names()]
        return max(matches, key=lambda match: _ordered(match[0].version), default=None)

    def with_class(self, full: str) -> list[InstalledPlugin]:
        """Returns the plugins that have the class, the latest version first."""
        plugins = [plugin for plugin in self.plugins if full in plugin.classes]
        return sorted(plugins, key=lambda plugin: _ordered(plugin.version), reverse=True)


def scan(plugin_path: str, libraries: Sequence[str] = ()) -> Catalog:
    """Returns all plugins below the folders of a worker's `plugin.path` (separated by commas). Imports nothing of them.

    Reads and unpacks files, so call it in a thread. Broken plugins are in the catalog and in the log; all others are
    found. A folder that does not exist is broken. Java plugins find the jars of `libraries` behind their own.
    """
    shared = [Path(folder).expanduser().absolute() for folder in libraries]
    plugins: dict[tuple[str, Path], InstalledPlugin] = {}
    broken: list[BrokenPlugin] = []
    for folder in dict.fromkeys(part.strip() for part in plugin_path.split(",") if part.strip()):
        root = Path(folder).expanduser().absolute()
        for path in (root, *_inside(root)):
            try:
                found_here = _plugins_of(path, shared, root=path == root)
                plugins |= {(str(p), p.folder): replace(p, source=path) for p in found_here}
            except (InvalidArgument, OSError, UnicodeDecodeError) as error:
                broken.append(BrokenPlugin(path, str(error)))
                _log.warning("plugin_broken", path=str(path), error=str(error))
    return Catalog(sorted(_beside_each_other([*plugins.values()]), key=str), broken)


def _beside_each_other(plugins: Sequence[InstalledPlugin]) -> Iterator[InstalledPlugin]:
    """Yields the plugins; Java plugins know each other's converters, transforms and predicates, the latest first."""
    java = [plugin.java for plugin in plugins if plugin.java is not None]
    java.sort(key=lambda plugin: (_ordered(plugin.version), plugin.name), reverse=True)
    for plugin in plugins:
        if plugin.java is None:
            yield plugin
        else:
            others = java_folders.beside(plugin.java, java)
            yield replace(plugin, java=others, folder=others.folder)


def use(folder: str | Path, *, quick: bool = False) -> None:
    """Makes a plugin folder's connectors known to `find_connector` in this process; the folder goes first on sys.path.

    Called in processes that run third-party code: plugin hosts, and slots before the first order. Imports
    nothing yet; a class that cannot be imported fails at its first use. `quick` is for a process that answers
    questions and copies nothing. Raises InvalidArgument.
    """
    path = str(folder)
    if java_folders.is_description(Path(folder)):
        # It brings JPype, which most processes do without.
        module = importlib.import_module("keelman.connectors.java.plugins")
        module.use(java_folders.read(Path(folder)), quick=quick)
        return
    installed = list(_installed(Path(folder)))
    if not installed:
        raise InvalidArgument(f"{path}: no connectors (entry points of {GROUP}) in it", reason="PLUGIN_BROKEN")
    if path not in sys.path:
        sys.path.insert(0, path)
    for plugin in installed:
        for full in plugin.classes:
            registry.add(full, lambda p=plugin, f=full: load(p, f))  # type: ignore[misc]


def load(plugin: InstalledPlugin, name: str) -> type[Connector]:
    """Imports one of a plugin's connectors. Raises PluginFault for any fault of the connector."""
    where = f"plugin {plugin}: {name} ({plugin.classes[name]})"
    try:
        loaded = EntryPoint(name, plugin.classes[name], GROUP).load()
    except BaseException as error:  # also sys.exit: it ends the import and not the process
        what = f"{type(error).__name__}: {error_text(error)}".removesuffix(": ")
        raise PluginFault(where, f"cannot be imported: {what}{_place(error, plugin.folder)}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, Connector)):
        raise PluginFault(where, "is no keelman.connect.plugin.Connector")
    missing = [a for a in ("names", "version", "direction", "runs_on") if not hasattr(loaded, a)]
    missing += sorted(getattr(loaded, "__abstractmethods__", ()))
    if missing:
        raise PluginFault(where, f"lacks {', '.join(missing)}")
    methods = COPIES_WITH[loaded.direction] if isinstance(loaded.direction, Direction) else ()
    if methods and not any(_defines(loaded, method) for method in methods):
        raise PluginFault(where, f"lacks {' or '.join(methods)}, without which a {loaded.direction.value} cannot copy")
    return loaded


def _defines(kind: type[Connector], method: str) -> bool:
    return any(method in vars(base) for base in kind.__mro__[: kind.__mro__.index(Connector)])


def _place(error: BaseException, folder: Path) -> str:
    """Returns where in the plugin an import failed, e.g. ` (acme/source.py, line 3)`; empty if not in its files."""
    if isinstance(error, SyntaxError):  # its text names the place
        return ""
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    inside = [(Path(file).relative_to(folder), line) for file, line in places if Path(file).is_relative_to(folder)]
    return f" ({inside[-1][0]}, line {inside[-1][1]})" if inside else ""


def _inside(root: Path) -> Sequence[Path]:
    """Returns the wheels, the jars and the folders in a folder of the plugin path."""
    if not root.is_dir():
        return ()
    return sorted(p for p in root.iterdir() if p.suffix in FILES or (p.is_dir() and not _is_metadata(p)))


def _plugins_of(path: Path, libraries: Sequence[Path], *, root: bool) -> Sequence[InstalledPlugin]:
    """Returns the plugins of a file or folder. Files in a folder form one plugin, except in the plugin path's own
    folders."""
    if path.suffix == ".jar":
        return _java_plugins(path, libraries)
    if path.suffix == ".whl":
        return list(_installed(unpacked([path]))) if _has_connectors(path) else []
    if not path.is_dir():
        raise InvalidArgument(f"{path}: no such folder", reason="PLUGIN_BROKEN")
    plugins = list(_installed(path))
    wheels = [] if root else sorted(path.glob("*.whl"))
    if any(_has_connectors(wheel) for wheel in wheels):
        plugins += _installed(unpacked(wheels))
    return plugins if root else [*plugins, *_java_plugins(path, libraries, needed=not plugins)]


def _java_plugins(path: Path, libraries: Sequence[Path], *, needed: bool = False) -> list[InstalledPlugin]:
    """Returns the Java plugin of a folder or a jar, if it has any; logs problems of its parts. Raises
    InvalidArgument (PLUGIN_BROKEN) if it is `needed`, for jars that have problems and no usable class."""
    described = java_folders.described(path, libraries)
    if described is None:
        return []
    for problem in described.problems:
        _log.warning("plugin_part_broken", path=str(path), error=problem)
    if needed and described.problems and not described.classes:
        raise InvalidArgument("; ".join(described.problems), reason="PLUGIN_BROKEN")
    connectors = {registry.java_name(connector.class_name): connector.type for connector in described.connectors}
    return (
        [InstalledPlugin(described.name, described.version, described.folder, connectors, java=described)]
        if described.classes
        else []
    )


def _has_connectors(wheel: Path) -> bool:
    return f"[{GROUP}]" in entry_points_text(wheel)


def _installed(folder: Path) -> Iterator[InstalledPlugin]:
    """Yields a folder's distributions with connectors. Raises InvalidArgument when their metadata is broken."""
    for distribution in distributions(path=[str(folder)]):
        classes = {e.name: e.value for e in distribution.entry_points if e.group == GROUP}
        if not classes:
            continue
        for name, value in classes.items():
            if not _ENTRY.fullmatch(value):
                text = f"{folder}: entry point {name} = {value}: expected module:Class"
                raise InvalidArgument(text, reason="PLUGIN_BROKEN")
        yield InstalledPlugin(*_name_and_version(distribution, folder), folder, classes)


def _name_and_version(distribution: Distribution, folder: Path) -> tuple[str, str]:
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    fields = email.message_from_string(text)
    name, version = fields["Name"], fields["Version"]
    if not name or not version:
        raise InvalidArgument(f"{folder}: metadata without Name or Version", reason="PLUGIN_BROKEN")
    return str(name), str(version)


def _is_metadata(path: Path) -> bool:
    return path.name.endswith((".dist-info", ".egg-info")) or path.name.startswith(".")


def _ordered(version: str) -> tuple[tuple[int, int, str], ...]:
    """Returns a version's sort key: 1.9, 1.10rc1, 1.10, 1.10.1, 1.10.1.post1."""
    parts = []
    for part in re.findall(r"\d+|[a-z]+", version.lower()):
        if part.isdecimal():
            parts.append((2, int(part), ""))
        else:
            parts.append((3 if part == "post" else 0, 0, part))
    return (*parts, (1, 0, ""))
