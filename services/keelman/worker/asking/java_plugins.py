"""Queries Java classes about themselves: once for each version of a plugin's files; keeps the answers on this host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from keelman.connect import step_factories
from keelman.connect.config.definition import ConfigDef
from keelman.connect.errors import ConnectError
from keelman.connectors import registry
from keelman.connectors.java import jvm
from keelman.connectors.plugins.client import PluginHost
from keelman.connectors.plugins.java_folders import JavaPlugin, keep_answers
from keelman.connectors.plugins.plugin_path import InstalledPlugin
from keelman.model.errors import KeelmanError, NotFound
from keelman.runtime.logs.logging import get_logger

log = get_logger()
NOT_READY = "PLUGIN_NOT_READY"
Wait = Callable[[Coroutine[Any, Any, ConfigDef]], ConfigDef]


async def ask_java(host: PluginHost, java: JavaPlugin) -> JavaPlugin:
    """Returns the plugin with its classes' answers, once all that they run with is present: versions, and problems.

    A plugin that ends or hangs its process keeps the facts in its jars. Raises as `jvm.prepare`: FailedPrecondition
    without Java or JPype, Unavailable without the jars of Connect's runtime.
    """
    await jvm.prepare(lambda line: log.info("java_plugins", step=line))
    if java.asked:
        return java
    try:
        java_answers = await host.java_answers()
    except (ConnectError, KeelmanError) as error:
        log.warning("java_plugin_not_asked", plugin=str(host.plugin), error=str(error))
        return java
    return await asyncio.to_thread(keep_answers, java, java_answers)


def steps(plugin_hosts: Iterable[tuple[PluginHost, JavaPlugin]], wait: Wait) -> list[registry.PluginStep]:
    """Returns the converters, transforms and predicates of these plugins that can be loaded; `wait` runs the query for
    their keys in a thread."""
    return [step for host, java in plugin_hosts for step in java.usable_steps(partial(_keys, wait, host))]


def with_steps(config: Mapping[str, str], plugins: Sequence[InstalledPlugin], *, ready: bool) -> InstalledPlugin | None:
    """Returns the Java plugin whose converters, transforms or predicates a connector names that is not Java's; None
    where it names none. It finds those of the others, too. Raises NotFound (PLUGIN_NOT_READY) for an unknown name,
    unless `ready`."""
    named = [name for _, name in step_factories.named_steps(config) if name] if plugins else []
    for full in map(registry.full_name, named):
        if full is None and not ready:
            raise NotFound(f"one of {', '.join(named)} is not known yet", reason=NOT_READY)
        if full is not None and registry.is_step(full):
            whose = (
                plugin for plugin in plugins if plugin.java and any(s.class_name == full for s in plugin.java.steps)
            )
            return next(whose, None)
    return None


def _keys(wait: Wait, host: PluginHost, class_name: str, kind: str) -> ConfigDef:
    return wait(host.step_keys(class_name, kind))
