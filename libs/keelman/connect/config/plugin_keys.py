"""Rules and recommendations for keys whose values are plugins or versions of them, and the keys of transforms.

An alias of `transforms` or `predicates` adds `transforms.x.type`, `.plugin.version`, then the class's own keys, and for
transforms `.predicate` and `.negate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keelman.connect.config.definition import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    Importance,
    Type,
    Validator,
    Width,
    parse_type,
)
from keelman.connect.config.plugin_kinds import Plugins, PluginType
from keelman.connect.config.rules import Rule
from keelman.connect.config.versions import VersionRange, VersionRangeError, requirement
from keelman.connect.errors import ConfigValueError

CLASS = "connector.class"
IMPLICIT = ConfigDef(
    ConfigKey("predicate", Type.STRING, None, Importance.MEDIUM, "Alias of the predicate that this is bound to."),
    ConfigKey("negate", Type.BOOLEAN, False, Importance.MEDIUM, "Whether this is for records that do not match."),
)
PLACES = {PluginType.TRANSFORMATION: ("transforms", "Transforms"), PluginType.PREDICATE: ("predicates", "Predicates")}


def version_rule(name: str, value: str | None) -> None:
    """Requires a version or a range of versions."""
    try:
        requirement(value)
    except VersionRangeError as error:
        raise ConfigValueError(name, value, whole=str(error)) from None


def converter_rule(plugins: Plugins | None, kind: PluginType) -> Validator:
    """Requires a class of this kind, or none."""

    def check(name: str, value: str | None) -> None:
        if value is not None and plugins is not None:
            check_kind(plugins, name, value, kind)

    return check


def check_kind(plugins: Plugins, name: str, class_name: str, kind: PluginType) -> None:
    """Raises ConfigValueError for a class of another kind, or of none."""
    if plugins.is_a(class_name, kind):
        return
    inner = plugins.nested(class_name)
    if inner:
        whole = f"This class is abstract and cannot be created. Did you mean {', '.join(inner)}?"
        raise ConfigValueError(name, class_name, whole=whole)
    whole = f"Class class {class_name} does not implement the {kind.interface} interface"
    raise ConfigValueError(name, class_name, whole=whole)


def version_problem(plugins: Plugins, class_name: str, version: str | None) -> str:
    """Returns why no version of the class is within `version`; empty when one is. Raises VersionRangeError."""
    versions = plugins.versions(class_name)
    within = requirement(version)
    if within is None or within.latest(versions) is not None:
        return ""
    return misfit(class_name, within, versions)


def misfit(class_name: str, within: VersionRange, versions: Sequence[str]) -> str:
    """Returns Connect's text for a class of which no version is within a range."""
    return (
        f"Plugin {class_name} not found that matches the version range {within}, "
        f"available versions: [{', '.join(versions)}]"
    )


def latest(plugins: Plugins, class_name: str | None) -> str | None:
    """Returns the class's default version; None for an unknown class, under any name."""
    plugin = None if class_name is None else plugins.find(class_name)
    return next(iter(plugins.versions(plugin)), None) if plugin else None


@dataclass(frozen=True, slots=True)
class ConnectorVersions:
    """Recommends the versions of the connector's class."""

    plugins: Plugins | None

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[str]:
        """Returns each version once."""
        plugin = self.plugins.find(parsed[CLASS] or "") if self.plugins else None
        return list(dict.fromkeys(self.plugins.versions(plugin))) if self.plugins and plugin else []

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Whether there is a class."""
        return parsed[CLASS] is not None


@dataclass(frozen=True, slots=True)
class ClassRecommender:
    """Recommends the classes of a kind."""

    plugins: Plugins | None
    kind: PluginType

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[str]:
        """Returns all classes of the kind."""
        return self.plugins.classes(self.kind) if self.plugins else []

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Returns True."""
        return True


@dataclass(frozen=True, slots=True)
class VersionRecommender:
    """Recommends the versions of the class in another key."""

    plugins: Plugins | None
    kind: PluginType
    key: str
    always: bool = False

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[str]:
        """Returns each version once."""
        class_name, plugins = parsed[self.key], self.plugins
        usable = plugins is not None and class_name is not None and plugins.is_a(class_name, self.kind)
        return list(dict.fromkeys(plugins.versions(class_name))) if plugins and usable else []

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Whether there is a class."""
        return self.always or parsed[self.key] is not None


def alias_keys(plugins: Plugins, config: Mapping[str, str | None], kind: PluginType) -> list[ConfigKey]:
    """Returns the keys for the aliases of transforms or of predicates."""
    place = PLACES[kind][0]
    aliases = parse_type(place, config.get(place), Type.LIST) or []
    return [key for alias in dict.fromkeys(aliases) for key in _keys_of(plugins, config, kind, alias)]


def _keys_of(plugins: Plugins, config: Mapping[str, str | None], kind: PluginType, alias: str) -> list[ConfigKey]:
    place, title = PLACES[kind]
    prefix, group = f"{place}.{alias}.", f"{title}: {alias}"
    word = kind.value
    named, version_text = config.get(f"{prefix}type"), config.get(f"{prefix}plugin.version")
    plugin = plugins.find(named.strip()) if named and named.strip() else None
    usable = plugin is not None and plugins.is_a(plugin, kind)

    def rule(name: str, value: str | None) -> None:
        if f"{prefix}negate" in config and f"{prefix}predicate" not in config and kind is PluginType.TRANSFORMATION:
            whole = (
                f"Config '{prefix}negate' was provided but there is no config '{prefix}predicate' "
                "defining a predicate to be negated."
            )
            raise ConfigValueError(name, value, whole=whole)
        if value is not None:
            check_kind(plugins, name, value, kind)
            _check_version(plugins, name, value, version_text)

    def version(name: str, value: str | None) -> None:
        version_rule(name, value)
        if usable and plugin is not None:
            _check_version(plugins, name, plugin, value)

    keys = [
        ConfigKey(
            f"{prefix}type",
            Type.CLASS,
            REQUIRED,
            Importance.HIGH,
            f"Class of the {word} {alias}.",
            Rule(rule, f"valid configs for {alias} {word}"),
            group,
            0,
            Width.LONG,
            f"{kind.interface} type for {alias}",
            recommender=ClassRecommender(plugins, kind),
        ),
        ConfigKey(
            f"{prefix}plugin.version",
            Type.STRING,
            latest(plugins, plugin) if usable else None,
            Importance.HIGH,
            f"Version of the {word} {alias}, or a range of them.",
            version,
            group,
            1,
            Width.LONG,
            f"{kind.interface} version for {alias}",
            recommender=VersionRecommender(plugins, kind, f"{prefix}type", always=True),
        ),
    ]
    if not usable or plugin is None or _unfit(plugins, plugin, version_text):
        return keys
    own = plugins.definition(plugin, kind, version_text)
    if kind is PluginType.TRANSFORMATION:
        own = own + IMPLICIT
    return keys + own.embedded(prefix, group, 2)


def _check_version(plugins: Plugins, name: str, class_name: str, version: str | None) -> None:
    try:
        problem = version_problem(plugins, class_name, version)
    except VersionRangeError:  # the version's own key reports it
        return
    if problem:
        raise ConfigValueError(name, class_name, whole=problem)


def _unfit(plugins: Plugins, class_name: str, version: str | None) -> bool:
    try:
        return bool(version_problem(plugins, class_name, version))
    except VersionRangeError:
        return True
