"""Has this process find the connectors of a Java plugin's folder; the machine starts when the first is asked for."""

from __future__ import annotations

import faulthandler
import functools
import importlib
import sys

from keelman.connect.config.plugin_kinds import Kind, aliases
from keelman.connect.plugin import Connector
from keelman.connectors import registry
from keelman.connectors.java import jvm, logs
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.connectors.plugins.java_folders import CONNECTORS, JavaPlugin
from keelman.runtime.java.machine_options import machine_options


def use(plugin: JavaPlugin, *, quick: bool) -> None:
    """Adds its connectors to the registry. `quick` is for a process that answers questions and copies nothing."""
    for one in plugin.classes:
        if one.type in CONNECTORS:
            registry.add(
                registry.java_name(one.class_name), functools.partial(load, plugin, one.class_name, quick=quick)
            )


@functools.cache
def load(plugin: JavaPlugin, class_name: str, *, quick: bool) -> type[Connector]:
    """One of its connectors. Raises ConnectError for a fault of the class, FailedPrecondition without Java."""
    if not faulthandler.is_enabled():  # after the machine's start its handlers would take what is the machine's
        faulthandler.enable(sys.__stderr__ or sys.stderr)
    wanted = machine_options()
    jvm.start(jvm.JvmOptions(wanted.heap_bytes, quick=quick, more=wanted.more))
    logs.take_over()
    connector = importlib.import_module("keelman.connectors.java.connector")
    found: type[Connector] = connector.java_connector(_loader(plugin), class_name)
    return found


@functools.cache
def _loader(plugin: JavaPlugin) -> PluginLoader:
    return PluginLoader(plugin.location, [*plugin.jars, *plugin.libraries], _aliases(plugin))


def _aliases(plugin: JavaPlugin) -> dict[str, str]:
    """The short names of the plugin's classes that are no connectors."""
    found: dict[str, str] = {}
    for one in plugin.classes:
        if one.type not in CONNECTORS:
            found |= dict.fromkeys(aliases(one.class_name, Kind(one.type)), one.class_name)
    return found
