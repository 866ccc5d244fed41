"""Finds connectors and other plugins by their names in Connect. Opens no client and reads no data."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from keelman.connect.config.definition import ConfigDef
from keelman.connect.config.plugin_keys import misfit
from keelman.connect.config.plugin_kinds import PluginType, meant
from keelman.connect.config.versions import VersionRangeError, ordered, requirement
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Connector, Direction
from keelman.connectors import shipped
from keelman.connectors.shipped import CONVERTER_VERSION, Shipped
from keelman.model.errors import KeelmanError, NotFound
from keelman.model.workload import PLUGIN_BROKEN

Load = Callable[[], type[Connector]]


@dataclass(frozen=True, slots=True)
class PluginStep:
    """A converter, transform or predicate of a plugin. `keys` gets its keys from the class and raises what that
    raises."""

    class_name: str
    kind: PluginType
    version: str
    keys: Callable[[], ConfigDef]


JAVA = "java:"
"""Before the name of a Java plugin's class where keelman has a connector of that name: `java:org.apache.kafka.connect
.file.FileStreamSourceConnector` is the class in the plugin, the name without it is ours."""
_added: dict[str, tuple[Load, ...]] = {}
_broken: set[str] = set()
"""Added connectors that cannot be used: they have no alias, so that they hide no other connector's."""
_steps: dict[tuple[str, PluginType], tuple[PluginStep, ...]] = {}
_CONNECTORS = {entry.class_name: entry for entry in shipped.ALL if entry.is_connector}


@dataclass(frozen=True, slots=True)
class Listed:
    """A plugin as Connect's REST API lists it."""

    class_name: str
    kind: PluginType
    version: str


def add(name: str, *loads: Load) -> None:
    """Makes a plugin's connector known to `find_connector`, under its full name and its aliases.

    Each of `loads` imports another version, the latest first, and may raise ConnectError.
    """
    _added[name] = loads
    _broken.discard(name)
    full_name.cache_clear()


def add_steps(steps: Iterable[PluginStep]) -> None:
    """Replaces the plugin classes, other than connectors, that validation knows. A class that we ship too stays
    ours."""
    _steps.clear()
    for step in sorted(steps, key=lambda added: ordered(added.version), reverse=True):
        if not is_ours(step.class_name):
            _steps[step.class_name, step.kind] = (*_steps.get((step.class_name, step.kind), ()), step)
    full_name.cache_clear()


def is_ours(class_name: str) -> bool:
    """Returns whether we ship a plugin of this full name."""
    return any(entry.class_name == class_name for entry in shipped.ALL)


def is_step(class_name: str) -> bool:
    """Returns whether the class, by its full name, is a plugin's converter, transform or predicate."""
    return any(name == class_name for name, _ in _steps)


def set_usable(name: str, *, usable: bool) -> None:
    """Sets whether an added connector can be used in any version. An unusable connector leaves its aliases to
    others."""
    (_broken.discard if usable else _broken.add)(name)
    full_name.cache_clear()


@functools.lru_cache(maxsize=4096)  # called for each of many connectors at a time
def full_name(name: str) -> str | None:
    """Returns the full name of a plugin's class by any of its names; None when unknown, or when several share the
    alias."""
    names = _meant(name)
    return names[0] if len(names) == 1 else None


def _meant(name: str) -> list[str]:
    """Returns the full names that a name may mean; for an alias the usable ones, if there are any."""
    kinds: dict[str, set[PluginType]] = {}
    for entry in shipped.ALL:
        kinds.setdefault(entry.class_name, set()).add(entry.kind)
    for added in _added:
        if not added.startswith(JAVA):
            kinds.setdefault(added, {PluginType.SOURCE})  # source or sink: their aliases are made alike
    for step, kind in _steps:
        kinds.setdefault(step, set()).add(kind)
    if name.strip() in _added:
        return [name.strip()]
    names = meant(name, kinds)
    return [name for name in names if name not in _broken] or names


def java_name(class_name: str) -> str:
    """Returns the name of a Java plugin's class here: its own, prefixed if keelman has a connector of that name."""
    return f"{JAVA}{class_name}" if class_name in _CONNECTORS else class_name


def all_connectors() -> tuple[type[Connector], ...]:
    """Returns all connectors in all their versions, sorted by full Java name; of plugins only loadable ones."""
    connectors = [_load(entry) for entry in _CONNECTORS.values()]
    for name in list(_added):
        connectors += _loaded(name)
    return tuple(
        sorted(dict.fromkeys(connectors), key=lambda connector: (connector.names[0], ordered(connector.version)))
    )


def find_connector(class_name: str, version: str | None = None) -> type[Connector]:
    """Returns the connector by full, simple or short name, in the latest version that fits `connector.plugin.version`.

    Raises NotFound with Connect's message, and what a plugin's loading raises. Loads no other module than the
    connector's.
    """
    full = full_name(class_name)
    if full in _added:
        return _fitting(full, version) if len(_added[full]) > 1 else _added[full][0]()
    if full in _CONNECTORS:
        return cast("type[Connector]", _load(_CONNECTORS[full]))
    if full is None and _several(class_name):
        return find_connector(class_name, version)
    described = ", ".join(_described(entry) for entry in listed(PluginType.SINK, PluginType.SOURCE))
    raise NotFound(
        f"Failed to find any class that implements Connector and which name matches {class_name}, "
        f"available connectors are: {described}",
        reason="CONNECTOR_CLASS_UNKNOWN",
        metadata={"class": class_name},
    )


def _several(name: str) -> bool:
    """Loads the classes that share a name. Returns True if only one remains, since the others turned out to be broken.

    Raises NotFound with Connect's message while the name means several, and what the loading of unknown ones raises.
    """
    for full in _meant(name):
        if full in _added:
            with suppress(ConnectError):
                try:
                    _added[full][0]()
                except NotFound as error:
                    if error.reason != PLUGIN_BROKEN:
                        raise
    names = _meant(name)
    if len(names) > 1:
        raise NotFound(
            f"More than one connector matches alias {name}. Please use full package and class name instead. "
            f"Classes found: {', '.join(names)}",
            reason="CONNECTOR_CLASS_AMBIGUOUS",
            metadata={"class": name, "classes": ",".join(names)},
        )
    return len(names) == 1


def _fitting(full: str, version: str | None) -> type[Connector]:
    """Returns the latest of several versions, without loading others; or the latest within a requested range."""
    try:
        within = requirement(version)
    except VersionRangeError as error:
        raise NotFound(str(error), reason="CONNECTOR_VERSION_UNKNOWN") from None
    if within is None:
        return _latest(full)
    by_version = {connector.version: connector for connector in reversed(_loaded(full))}
    latest = within.latest(by_version)
    if latest is None:
        raise NotFound(misfit(full, within, [*reversed(by_version)]), reason="CONNECTOR_VERSION_UNKNOWN")
    return by_version[latest]


def _latest(full: str) -> type[Connector]:
    """Returns the latest usable version; if there is none, raises the error of the latest version."""
    first: NotFound | None = None
    for load in _added[full]:
        try:
            return load()
        except NotFound as error:
            if error.reason != PLUGIN_BROKEN:
                raise
            first = first or error
    assert first is not None, "an added connector has a version"
    raise first


def _loaded(full: str) -> list[type[Connector]]:
    connectors = []
    for load in _added[full]:
        with suppress(ConnectError, KeelmanError):
            connectors.append(load())
    return connectors


def listed(*kinds: PluginType) -> list[Listed]:
    """Returns all plugins of these kinds, kind by kind, sorted by class name, without those for tests."""
    entries: list[Listed] = []
    if PluginType.SINK in kinds or PluginType.SOURCE in kinds:
        entries += [
            Listed(connector.names[0], PluginType(connector.direction.value), connector.version)
            for connector in all_connectors()
        ]
    entries += [
        Listed(entry.class_name, entry.kind, CONVERTER_VERSION) for entry in shipped.ALL if not entry.is_connector
    ]
    entries += dict.fromkeys(Listed(*key, step.version) for key, steps in _steps.items() for step in steps)
    shown = [entry for entry in entries if entry.kind in kinds and entry.class_name not in shipped.FOR_TESTS]
    return sorted(shown, key=lambda entry: (list(PluginType).index(entry.kind), entry.class_name))


class PluginRegistry:
    """Looks up plugins for validation (`keelman.connect.config.plugin_kinds.Plugins`)."""

    def find(self, name: str) -> str | None:
        """Returns a class's full name by any of its names; also for a class that only contains plugins, and a
        helper."""
        class_name = full_name(name)
        named = name in shipped.NAMED_CLASSES or name.startswith(shipped.NAMED_PACKAGES)
        if class_name is None and (named or self.nested(name)):
            return name
        return class_name

    def classes(self, kind: PluginType) -> list[str]:
        """Returns the classes of a kind, sorted."""
        return [entry.class_name for entry in listed(kind)]

    def is_a(self, class_name: str, kind: PluginType) -> bool:
        """Returns whether the class is of this kind."""
        return (class_name, kind) in _steps or any(
            entry.class_name == class_name and entry.kind is kind for entry in shipped.ALL
        )

    def nested(self, class_name: str) -> list[str]:
        """Returns the plugins within a class that is no plugin itself."""
        names = (*(entry.class_name for entry in shipped.ALL), *dict.fromkeys(name for name, _ in _steps))
        return [name for name in names if name.startswith(f"{class_name}$")]

    def versions(self, class_name: str) -> list[str]:
        """Returns a class's versions, the latest first; one for each of its kinds; none for a class that does not
        load."""
        versions = [step.version for (name, _), steps in _steps.items() if name == class_name for step in steps]
        versions += [
            CONVERTER_VERSION for entry in shipped.ALL if entry.class_name == class_name and not entry.is_connector
        ]
        if class_name in _added:
            return [connector.version for connector in _loaded(class_name)]
        with suppress(ConnectError, KeelmanError):
            versions += [] if versions else [find_connector(class_name).version]
        return versions

    def definition(self, class_name: str, kind: PluginType, version: str | None = None) -> ConfigDef:
        """Returns the keys of a class that is no connector, in the latest version within `version`. Raises
        VersionRangeError."""
        for entry in shipped.ALL:
            if entry.class_name == class_name and entry.kind is kind and entry.module:
                return cast("ConfigDef", _load(entry).config_def())
        steps, within = _steps.get((class_name, kind), ()), requirement(version)
        fits = (step for step in steps if within is None or within.latest([step.version]) is not None)
        return next((step.keys() for step in fits), ConfigDef())


def kind_of(class_name: str) -> PluginType | None:
    """Returns the kind of a class by its full name, its first in Connect's order; None when unknown."""
    if class_name in _added:
        return _kind(find_connector(class_name).direction)
    kinds = [entry.kind for entry in shipped.ALL if entry.class_name == class_name]
    kinds += [kind for name, kind in _steps if name == class_name]
    return min(kinds, key=list(PluginType).index, default=None)


def _kind(direction: Direction) -> PluginType:
    return PluginType(direction.value)


def _described(entry: Listed) -> str:
    return (
        f"PluginDesc{{klass=class {entry.class_name}, name='{entry.class_name}', version='{entry.version}', "
        f"encodedVersion={entry.version}, type={entry.kind.value}, typeName='{entry.kind.value}', "
        "location='classpath'}"
    )


@functools.cache
def _load(entry: Shipped) -> Any:
    return getattr(importlib.import_module(entry.module), entry.attribute)
