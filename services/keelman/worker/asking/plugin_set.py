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
from keelman.connectors.plugins.plugin_path import InstalledPlugin
from keelman.model.errors import InvalidArgument, NotFound
from keelman.model.workload import PLUGIN_BROKEN
from keelman.worker.asking.java_plugins import NOT_READY
from keelman.worker.asking.third_party import ThirdParty

PATIENCE_SECONDS = 180.0
"""The jars that Java plugins run with may have to be fetched first."""
LOOK_SECONDS = 0.2


class WorkerPluginSet:
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
        classes = self.found()
        for folder, name in self._named.items():
            mine = [worker_class for worker_class in classes if worker_class.plugin == name]
            if any(not worker_class.problem for worker_class in mine) or not (mine or _is_python(folder)):
                continue
            reason = "; ".join(dict.fromkeys(worker_class.problem for worker_class in mine)) or "no connector in it"
            raise InvalidArgument(f"plugin {name} cannot be loaded: {reason}", reason=PLUGIN_BROKEN)

    def _are_awaited(self) -> bool:
        """Returns whether no class of a plugin of the cluster can be used yet, but one may be later."""
        for folder in self._named:
            mine = [p for p in self._plugins.catalog.plugins if p.source.is_relative_to(folder)]
            kinds_known = [self._plugins.known(plugin, name) for plugin in mine for name in plugin.classes]
            problems = [kind for kind in kinds_known if isinstance(kind, NotFound)]
            if (
                kinds_known
                and len(problems) == len(kinds_known)
                and any(problem.reason == NOT_READY for problem in problems)
            ):
                return True
        return False

    def found(self) -> Sequence[WorkerPlugin]:
        """Returns each class, and each file that cannot be read, as far as they are known."""
        catalog = self._plugins.catalog
        plugins = [worker_class for plugin in catalog.plugins for worker_class in self._classes(plugin)]
        return [
            *plugins,
            *(self._with_place(WorkerPlugin(problem=fault.message), fault.path) for fault in catalog.broken),
        ]

    def _classes(self, plugin: InstalledPlugin) -> Iterator[WorkerPlugin]:
        java = self._plugins.java(plugin)
        return self._of_wheel(plugin) if java is None else self._of_jars(plugin, java)

    def _of_wheel(self, plugin: InstalledPlugin) -> Iterator[WorkerPlugin]:
        for name in plugin.classes:
            kind = self._plugins.known(plugin, name)
            reported = WorkerPlugin(class_name=name, version=plugin.version, language="python")
            if isinstance(kind, NotFound):
                reported.problem = kind.message
            else:
                reported.type, reported.version = kind.direction.value, kind.version
            yield self._with_place(reported, plugin.source)

    def _of_jars(self, plugin: InstalledPlugin, java: JavaPlugin) -> Iterator[WorkerPlugin]:
        for plugin_class in java.classes:
            reported = WorkerPlugin(
                class_name=plugin_class.class_name,
                type=plugin_class.type,
                version=plugin_class.version,
                language="java",
            )
            name = registry.java_name(plugin_class.class_name)
            kind = self._plugins.known(plugin, name) if name in plugin.classes else None
            reported.problem = kind.message if isinstance(kind, NotFound) else java.problem_of(plugin_class.class_name)
            yield self._with_place(
                reported, plugin.source / plugin_class.path if plugin.source.is_dir() else plugin.source
            )
        for problem in java.problems:
            yield self._with_place(WorkerPlugin(problem=problem, language="java"), plugin.source)

    def _with_place(self, reported: WorkerPlugin, path: Path) -> WorkerPlugin:
        """Returns it with its place: within a plugin of the cluster, or on this host."""
        reported.path = str(path)
        for folder, name in self._named.items():
            if path.is_relative_to(folder):
                reported.plugin, reported.path = name, str(path.relative_to(folder))
        return reported


def _is_python(folder: Path) -> bool:
    """Returns whether wheels, or installed parts of one, are in a plugin's folder."""
    return any(True for pattern in ("*/*.whl", "*/*.dist-info") for _ in folder.glob(pattern))
