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
class Step:
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
_steps: dict[tuple[str, PluginType], tuple[Step, ...]] = {}
_CONNECTORS = {one.class_name: one for one in shipped.ALL if one.is_connector}


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


def add_steps(steps: Iterable[Step]) -> None:
    """Replaces the plugin classes, other than connectors, that validation knows. A class that we ship too stays
    ours."""
    _steps.clear()
    for one in sorted(steps, key=lambda one: ordered(one.version), reverse=True):
        if not is_ours(one.class_name):
            _steps[one.class_name, one.kind] = (*_steps.get((one.class_name, one.kind), ()), one)
    full_name.cache_clear()


def is_ours(class_name: str) -> bool:
    """Returns whether we ship a plugin of this full name."""
    return any(one.class_name == class_name for one in shipped.ALL)


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
    found = _meant(name)
    return found[0] if len(found) == 1 else None


def _meant(name: str) -> list[str]:
    """Returns the full names that a name may mean; for an alias the usable ones, if there are any."""
    kinds: dict[str, set[PluginType]] = {}
    for one in shipped.ALL:
        kinds.setdefault(one.class_name, set()).add(one.kind)
    for added in _added:
        if not added.startswith(JAVA):
            kinds.setdefault(added, {PluginType.SOURCE})  # source or sink: their aliases are made alike
    for step, kind in _steps:
        kinds.setdefault(step, set()).add(kind)
    if name.strip() in _added:
        return [name.strip()]
    found = meant(name, kinds)
    return [one for one in found if one not in _broken] or found


def java_name(class_name: str) -> str:
    """Returns the name of a Java plugin's class here: its own, prefixed if keelman has a connector of that name."""
    return f"{JAVA}{class_name}" if class_name in _CONNECTORS else class_name


def all_connectors() -> tuple[type[Connector], ...]:
    """Returns all connectors in all their versions, sorted by full Java name; of plugins only loadable ones."""
    found = [_load(one) for one in _CONNECTORS.values()]
    for name in list(_added):
        found += _loaded(name)
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.names[0], ordered(one.version))))


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
    described = ", ".join(_described(one) for one in listed(PluginType.SINK, PluginType.SOURCE))
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
    for one in _meant(name):
        if one in _added:
            with suppress(ConnectError):
                try:
                    _added[one][0]()
                except NotFound as error:
                    if error.reason != PLUGIN_BROKEN:
                        raise
    found = _meant(name)
    if len(found) > 1:
        raise NotFound(
            f"More than one connector matches alias {name}. Please use full package and class name instead. "
            f"Classes found: {', '.join(found)}",
            reason="CONNECTOR_CLASS_AMBIGUOUS",
            metadata={"class": name, "classes": ",".join(found)},
        )
    return len(found) == 1


def _fitting(full: str, version: str | None) -> type[Connector]:
    """Returns the latest of several versions, without loading others; or the latest within a requested range."""
    try:
        within = requirement(version)
    except VersionRangeError as error:
        raise NotFound(str(error), reason="CONNECTOR_VERSION_UNKNOWN") from None
    if within is None:
        return _latest(full)
    found = {one.version: one for one in reversed(_loaded(full))}
    latest = within.latest(found)
    if latest is None:
        raise NotFound(misfit(full, within, [*reversed(found)]), reason="CONNECTOR_VERSION_UNKNOWN")
    return found[latest]


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
    found = []
    for load in _added[full]:
        with suppress(ConnectError, KeelmanError):
            found.append(load())
    return found


def listed(*kinds: PluginType) -> list[Listed]:
    """Returns all plugins of these kinds, kind by kind, sorted by class name, without those for tests."""
    found: list[Listed] = []
    if PluginType.SINK in kinds or PluginType.SOURCE in kinds:
        found += [Listed(one.names[0], PluginType(one.direction.value), one.version) for one in all_connectors()]
    found += [Listed(one.class_name, one.kind, CONVERTER_VERSION) for one in shipped.ALL if not one.is_connector]
    found += dict.fromkeys(Listed(*key, one.version) for key, steps in _steps.items() for one in steps)
    shown = [one for one in found if one.kind in kinds and one.class_name not in shipped.FOR_TESTS]
    return sorted(shown, key=lambda one: (list(PluginType).index(one.kind), one.class_name))


class Registry:
    """Looks up plugins for validation (`keelman.connect.config.plugin_kinds.Plugins`)."""

    def find(self, name: str) -> str | None:
        """Returns a class's full name by any of its names; also for a class that only contains plugins, and a
        helper."""
        known = full_name(name)
        named = name in shipped.NAMED_CLASSES or name.startswith(shipped.NAMED_PACKAGES)
        if known is None and (named or self.nested(name)):
            return name
        return known

    def classes(self, kind: PluginType) -> list[str]:
        """Returns the classes of a kind, sorted."""
        return [one.class_name for one in listed(kind)]

    def is_a(self, class_name: str, kind: PluginType) -> bool:
        """Returns whether the class is of this kind."""
        return (class_name, kind) in _steps or any(
            one.class_name == class_name and one.kind is kind for one in shipped.ALL
        )

    def nested(self, class_name: str) -> list[str]:
        """Returns the plugins within a class that is no plugin itself."""
        known = (*(one.class_name for one in shipped.ALL), *dict.fromkeys(name for name, _ in _steps))
        return [one for one in known if one.startswith(f"{class_name}$")]

    def versions(self, class_name: str) -> list[str]:
        """Returns a class's versions, the latest first; one for each of its kinds; none for a class that does not
        load."""
        found = [one.version for (name, _), steps in _steps.items() if name == class_name for one in steps]
        found += [CONVERTER_VERSION for one in shipped.ALL if one.class_name == class_name and not one.is_connector]
        if class_name in _added:
            return [one.version for one in _loaded(class_name)]
        with suppress(ConnectError, KeelmanError):
            found += [] if found else [find_connector(class_name).version]
        return found

    def definition(self, class_name: str, kind: PluginType, wanted: str | None = None) -> ConfigDef:
        """Returns the keys of a class that is no connector, in the latest version within `wanted`. Raises
        VersionRangeError."""
        for one in shipped.ALL:
            if one.class_name == class_name and one.kind is kind and one.module:
                return cast("ConfigDef", _load(one).config_def())
        steps, within = _steps.get((class_name, kind), ()), requirement(wanted)
        fits = (one for one in steps if within is None or within.latest([one.version]) is not None)
        return next((one.keys() for one in fits), ConfigDef())


def kind_of(class_name: str) -> PluginType | None:
    """Returns the kind of a class by its full name, its first in Connect's order; None when unknown."""
    if class_name in _added:
        return _kind(find_connector(class_name).direction)
    kinds = [one.kind for one in shipped.ALL if one.class_name == class_name]
    kinds += [kind for name, kind in _steps if name == class_name]
    return min(kinds, key=list(PluginType).index, default=None)


def _kind(direction: Direction) -> PluginType:
    return PluginType(direction.value)


def _described(one: Listed) -> str:
    return (
        f"PluginDesc{{klass=class {one.class_name}, name='{one.class_name}', version='{one.version}', "
        f"encodedVersion={one.version}, type={one.kind.value}, typeName='{one.kind.value}', location='classpath'}}"
    )


@functools.cache
def _load(one: Shipped) -> Any:
    return getattr(importlib.import_module(one.module), one.attribute)
