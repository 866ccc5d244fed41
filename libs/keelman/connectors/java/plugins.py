"""Makes the classes of a Java plugin's folder known to this process; the virtual machine starts with the first use."""

from __future__ import annotations

import faulthandler
import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from keelman.connect import step_factories
from keelman.connect.config.definition import ConfigDef
from keelman.connect.config.plugin_kinds import PluginType, aliases
from keelman.connect.config.versions import ordered
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Connector
from keelman.connectors import registry
from keelman.connectors.java import jvm, logs
from keelman.connectors.java.plugin_loader import VERSION, PluginLoader, fitting
from keelman.connectors.plugins import java_folders
from keelman.connectors.plugins.java_folders import UNDEFINED, JavaPlugin
from keelman.connectors.shipped import CONVERTER_VERSION
from keelman.model.errors import InvalidArgument
from keelman.model.plugins.plugin import PluginClass
from keelman.runtime.java.machine_options import machine_options

_used: dict[JavaPlugin, bool] = {}


def use(plugin: JavaPlugin, *, quick: bool) -> None:
    """Adds its classes to the registry. `quick` is for a process that answers questions and copies nothing."""
    _used[plugin] = quick
    for connector in plugin.connectors:
        registry.add(
            registry.java_name(connector.class_name), functools.partial(load, plugin, connector.class_name, quick=quick)
        )
    steps = [
        step
        for whose in (plugin, *_others(plugin))
        for step in whose.usable_steps(functools.partial(_keys_in, whose, quick=quick))
    ]
    registry.add_steps(steps)
    for step in steps:
        if step.kind is not PluginType.HEADER_CONVERTER and not registry.is_ours(step.class_name):
            step_factories.note(step.class_name, step.kind, _maker(plugin, step, quick=quick))


def _maker(plugin: JavaPlugin, step: registry.PluginStep, *, quick: bool) -> step_factories.Make:
    """Returns the function that makes a converter, transform or predicate for a connector that is not Java's."""

    def make(config: Mapping[str, str]) -> Any:
        _start(quick=quick)
        module = importlib.import_module("keelman.connectors.java.steps.steps_in_python")
        versions = _versions(plugin, step.class_name) or {UNDEFINED: _loader(plugin)}
        loader = fitting(step.class_name, versions, config.get(VERSION))
        return module.made_step(loader, step.class_name, step.kind, config)

    return make


@functools.cache
def load(plugin: JavaPlugin, class_name: str, *, quick: bool) -> type[Connector]:
    """Loads one of its connectors. Raises ConnectError for a fault of the class, FailedPrecondition without Java."""
    _start(quick=quick)
    connector = importlib.import_module("keelman.connectors.java.connector")
    if refused := dict(plugin.refused).get(class_name):
        raise ConnectError(refused)
    loaded: type[Connector] = connector.java_connector(_loader(plugin), class_name, plugin.inner_of(class_name))
    return loaded


def answers() -> list[dict[str, str]]:
    """Returns a description of each class of the plugin in use: {"class", "type", "version", "problem"}.

    The problem is the reason why the class cannot be loaded or instantiated, empty if it can.
    """
    results = []
    for plugin, quick in _used.items():
        _start(quick=quick)
        results += [_answer(plugin, plugin_class) for plugin_class in plugin.classes]
    return results


def step_keys(class_name: str, kind: str) -> ConfigDef:
    """Returns the keys of a class that is no connector, with Java's validators. Raises ConnectError,
    InvalidArgument."""
    for plugin, quick in _used.items():
        for whose in (plugin, *_others(plugin)):
            if any((step.class_name, step.type) == (class_name, kind) for step in whose.steps):
                return _keys_in(whose, class_name, kind, quick=quick)
    raise InvalidArgument(f"{class_name} is no {kind} of a Java plugin", reason="PLUGIN_BROKEN")


def start_quickly() -> None:
    """Starts the machine of a process that answers a question and ends. Raises FailedPrecondition without Java."""
    _start(quick=True)


def _keys_in(plugin: JavaPlugin, class_name: str, _kind: str, *, quick: bool) -> ConfigDef:
    """Returns the keys of the class in this plugin's version. Raises ConnectError."""
    _start(quick=quick)
    loader = _loader(plugin)
    configs = importlib.import_module("keelman.connectors.java.configs")
    errors = importlib.import_module("keelman.connectors.java.errors")
    with loader.entered(), errors.translated(f"{class_name}.config"):
        definition: ConfigDef = configs.step_definition(loader.load(class_name)().config())
        return definition


def _answer(plugin: JavaPlugin, plugin_class: PluginClass) -> dict[str, str]:
    said = {"class": plugin_class.class_name, "type": plugin_class.type, "version": plugin_class.version, "problem": ""}
    errors = importlib.import_module("keelman.connectors.java.errors")
    loader = _loader(plugin)
    try:
        with loader.entered(), errors.translated():
            instance = loader.load(plugin_class.class_name)()
            said["version"] = _version(instance)
    except (ConnectError, TypeError) as error:  # a TypeError is JPype's for a class that it cannot make
        said["problem"] = f"{plugin_class.class_name} cannot be loaded: {_said(error)}"
    return said


def _version(instance: Any) -> str:
    versioned: Any = jvm.java_class("org.apache.kafka.connect.components.Versioned")
    version = instance.version() if isinstance(instance, versioned) else None
    return UNDEFINED if version is None else str(version)


def _said(error: ConnectError | TypeError) -> str:
    name = getattr(error, "java_name", "")
    return f"{name}: {error}" if isinstance(error, ConnectError) and error.java_trace else str(error)


def _start(*, quick: bool) -> None:
    if not faulthandler.is_enabled():  # after the machine's start its handlers would replace the machine's
        faulthandler.enable(sys.__stderr__ or sys.stderr)
    options = machine_options()
    jvm.start(jvm.JvmOptions(options.heap_bytes, quick=quick, more=options.more))
    logs.take_over()


@functools.cache
def _loader(plugin: JavaPlugin) -> PluginLoader:
    own = {plugin_class.class_name for plugin_class in plugin.classes}
    names: dict[str, str] = {}
    others: dict[str, Callable[[], PluginLoader]] = {}
    for whose in reversed((plugin, *_others(plugin))):  # the plugin's own win, then the latest version
        for step in whose.steps:
            names |= dict.fromkeys(aliases(step.class_name, PluginType(step.type)), step.class_name)
            if step.class_name not in own and not registry.is_ours(step.class_name):
                others[step.class_name] = functools.partial(_loader, whose)
    versions = functools.partial(_versions, plugin)
    return PluginLoader(plugin.location, [*plugin.jars, *plugin.libraries], names, others, versions)


@functools.cache
def _versions(plugin: JavaPlugin, class_name: str) -> Mapping[str, PluginLoader]:
    """Returns the loaders of a converter, transform or predicate that its connectors can name, by the version that the
    class reports, the latest first; only loaders that can load it."""
    if registry.is_ours(class_name):
        return {CONVERTER_VERSION: _loader(plugin)}
    loaders: dict[str, PluginLoader] = {}
    for whose in (plugin, *_others(plugin)):
        for step in whose.steps:
            if step.class_name == class_name and not (said := _answer(whose, step))["problem"]:
                loaders.setdefault(said["version"], _loader(whose))
    return {version: loaders[version] for version in sorted(loaders, key=ordered, reverse=True)}


@functools.cache
def _others(plugin: JavaPlugin) -> tuple[JavaPlugin, ...]:
    """Returns the plugins whose steps this plugin's connectors can name, without plugins removed meanwhile."""
    plugins = []
    for folder in plugin.others:
        with suppress(OSError, ValueError, KeyError):
            plugins.append(java_folders.read(folder))
    return tuple(plugins)
