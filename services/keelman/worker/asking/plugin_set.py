"""Collects a worker's findings in plugins, for its reports and for its agent, which needs those of its cluster to
load."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from keelman.api.connect.v1.plugin_pb2 import WorkerPlugin
from keelman.connectors import registry
from keelman.connectors.plugins.java_folders import JavaPlugin
from keelman.connectors.plugins.plugin_path import Plugin
from keelman.model.errors import InvalidArgument, NotFound
from keelman.model.workload import PLUGIN_BROKEN
from keelman.worker.asking.java_plugins import NOT_READY
from keelman.worker.asking.third_party import ThirdParty

PATIENCE_SECONDS = 180.0
"""The jars that Java plugins run with may have to be fetched first."""
LOOK_SECONDS = 0.2


class PluginSet:
    """The plugins of a worker's cluster, `named` by their folders, e.g. "acme 1.0", beside those of its own path."""

    def __init__(self, plugins: ThirdParty, named: Mapping[str, str]) -> None:
        self._plugins = plugins
        self._named = {Path(folder): name for folder, name in named.items()}

    async def read(self) -> None:
        """Returns when all plugins are read. Raises InvalidArgument (PLUGIN_BROKEN) for a plugin of the cluster that
        cannot be used at all, or does not describe itself for long."""
        await self._plugins.read()
        end = time.monotonic() + PATIENCE_SECONDS
        while self._are_awaited():
            if time.monotonic() >= end:
                break
            await asyncio.sleep(LOOK_SECONDS)
        found = self.found()
        for folder, name in self._named.items():
            mine = [one for one in found if one.plugin == name]
            if any(not one.problem for one in mine) or not (mine or _is_python(folder)):
                continue
            why = "; ".join(dict.fromkeys(one.problem for one in mine)) or "there is no connector in it"
            raise InvalidArgument(f"plugin {name} cannot be loaded: {why}", reason=PLUGIN_BROKEN)

    def _are_awaited(self) -> bool:
        """Returns whether no class of a plugin of the cluster can be used yet, but one may be later."""
        for folder in self._named:
            mine = [p for p in self._plugins.catalog.plugins if p.source.is_relative_to(folder)]
            known = [self._plugins.known(plugin, name) for plugin in mine for name in plugin.classes]
            problems = [one for one in known if isinstance(one, NotFound)]
            if known and len(problems) == len(known) and any(one.reason == NOT_READY for one in problems):
                return True
        return False

    def found(self) -> Sequence[WorkerPlugin]:
        """Returns each class, and each file that cannot be read, as far as they are known."""
        catalog = self._plugins.catalog
        found = [one for plugin in catalog.plugins for one in self._classes(plugin)]
        return [*found, *(self._with_place(WorkerPlugin(problem=one.message), one.path) for one in catalog.broken)]

    def _classes(self, plugin: Plugin) -> Iterator[WorkerPlugin]:
        java = self._plugins.java(plugin)
        return self._of_wheel(plugin) if java is None else self._of_jars(plugin, java)

    def _of_wheel(self, plugin: Plugin) -> Iterator[WorkerPlugin]:
        for name in plugin.classes:
            known = self._plugins.known(plugin, name)
            made = WorkerPlugin(class_name=name, version=plugin.version, language="python")
            if isinstance(known, NotFound):
                made.problem = known.message
            else:
                made.type, made.version = known.direction.value, known.version
            yield self._with_place(made, plugin.source)

    def _of_jars(self, plugin: Plugin, java: JavaPlugin) -> Iterator[WorkerPlugin]:
        for one in java.classes:
            made = WorkerPlugin(class_name=one.class_name, type=one.type, version=one.version, language="java")
            name = registry.java_name(one.class_name)
            known = self._plugins.known(plugin, name) if name in plugin.classes else None
            made.problem = known.message if isinstance(known, NotFound) else java.problem_of(one.class_name)
            yield self._with_place(made, plugin.source / one.path if plugin.source.is_dir() else plugin.source)
        for problem in java.problems:
            yield self._with_place(WorkerPlugin(problem=problem, language="java"), plugin.source)

    def _with_place(self, made: WorkerPlugin, path: Path) -> WorkerPlugin:
        """Returns it with its place: within a plugin of the cluster, or on this host."""
        made.path = str(path)
        for folder, name in self._named.items():
            if path.is_relative_to(folder):
                made.plugin, made.path = name, str(path.relative_to(folder))
        return made


def _is_python(folder: Path) -> bool:
    """Returns whether wheels, or installed parts of one, are in a plugin's folder."""
    return any(True for pattern in ("*/*.whl", "*/*.dist-info") for _ in folder.glob(pattern))
