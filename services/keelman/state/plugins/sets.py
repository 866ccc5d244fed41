"""Resolves the plugins that a worker cluster names to versions and digests, and checks them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any

from keelman.api.connect.v1 import plugin_pb2, worker_cluster_pb2
from keelman.connect.config.versions import ordered
from keelman.model.cluster import ClusterGoal, WorkerCluster, WorkerClusterSpec, WorkerEngine
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.plugins.plugin import Plugin, PluginKind
from keelman.model.plugins.plugin_set import PluginRef
from keelman.model.rules.names import MAX_NAMED
from keelman.state.resources.snapshot import Snapshot

_ENGINES = {
    worker_cluster_pb2.WORKER_ENGINE_UNSPECIFIED: WorkerEngine.KEELMAN,
    worker_cluster_pb2.WORKER_ENGINE_KEELMAN: WorkerEngine.KEELMAN,
    worker_cluster_pb2.WORKER_ENGINE_KAFKA_CONNECT: WorkerEngine.KAFKA_CONNECT,
}


def plugin_fields(message: Any) -> dict[str, Any]:
    """Returns plugins, libraries and engine of a message as fields of a spec. Raises InvalidArgument."""
    return {
        "plugins": tuple(_ref(plugin) for plugin in message.plugins),
        "libraries": tuple(_ref(library) for library in message.libraries),
        "engine": engine_of(message.engine),
    }


def engine_of(engine: worker_cluster_pb2.WorkerEngine.ValueType) -> WorkerEngine:
    """Returns the engine of a message. Raises InvalidArgument."""
    if engine not in _ENGINES:
        raise InvalidArgument.of("spec.engine", engine, " or ".join(WorkerEngine))
    return _ENGINES[engine]


def resolved(spec: WorkerClusterSpec, snapshot: Snapshot) -> WorkerClusterSpec:
    """Returns the spec with version and digest of each plugin that it names: of the newest if it gives none.

    Raises InvalidArgument for an unknown plugin, and if one is named twice.
    """
    if not (spec.plugins or spec.libraries):
        return spec
    plugins = _resolved("spec.plugins", spec.plugins, snapshot.plugins)
    libraries = _resolved("spec.libraries", spec.libraries, snapshot.plugins)
    _check_distinct([("spec.plugins", plugins), ("spec.libraries", libraries)])
    for number, ref in enumerate(plugins if spec.engine is WorkerEngine.KAFKA_CONNECT else ()):
        if snapshot.plugins[ref.key].kind is PluginKind.WHEEL:
            legal = "a plugin with jars: workers of Apache Kafka Connect load no wheels"
            raise InvalidArgument.of(f"spec.plugins[{number}].name", ref.name, legal)
    for number, ref in enumerate(libraries):
        if snapshot.plugins[ref.key].kind is PluginKind.WHEEL:
            legal = "a jar, or an archive of jars: a Python plugin has its libraries in its own file"
            raise InvalidArgument.of(f"spec.libraries[{number}].name", ref.name, legal)
    return dataclasses.replace(spec, plugins=plugins, libraries=libraries)


def check_engine(cluster: WorkerCluster, spec: WorkerClusterSpec) -> None:
    """Raises FailedPrecondition for another engine while the goal of the cluster is RUNNING."""
    if spec.engine is not cluster.spec.engine and cluster.goal is ClusterGoal.RUNNING:
        raise FailedPrecondition(
            f"spec.engine: {cluster.spec.engine} cannot become {spec.engine} while worker cluster {cluster.name!r} "
            "has the goal RUNNING: stop it first",
            reason="RUNNING",
        )


def _ref(message: plugin_pb2.PluginRef) -> PluginRef:
    return PluginRef(message.name, message.version, message.sha256.lower())


def _resolved(field: str, refs: Iterable[PluginRef], plugins: Mapping[str, Plugin]) -> tuple[PluginRef, ...]:
    return tuple(_one(f"{field}[{number}]", ref, plugins) for number, ref in enumerate(refs))


def _one(field: str, ref: PluginRef, plugins: Mapping[str, Plugin]) -> PluginRef:
    mine = newest_first(plugin for plugin in plugins.values() if plugin.plugin == ref.name)
    if not mine:
        raise InvalidArgument.of(f"{field}.name", ref.name, f"the name of a plugin ({_some(plugins.values())})")
    fit = [plugin for plugin in mine if ref.version in ("", plugin.version)]
    if not fit:
        versions = ", ".join(plugin.version for plugin in mine[:MAX_NAMED])
        raise InvalidArgument.of(f"{field}.version", ref.version, f"a version of plugin {ref.name} ({versions})")
    same = [plugin for plugin in fit if ref.sha256 in ("", plugin.sha256)]
    if not same:
        digests = ", ".join(f"{plugin.version} has {plugin.sha256}" for plugin in fit[:MAX_NAMED])
        raise InvalidArgument.of(f"{field}.sha256", ref.sha256, f"the digest of plugin {ref.name} ({digests})")
    return PluginRef(ref.name, same[0].version, same[0].sha256)


def _some(plugins: Iterable[Plugin]) -> str:
    names = sorted({plugin.plugin for plugin in plugins})
    if not names:
        return "none exists yet: upload one first"
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _check_distinct(named: Iterable[tuple[str, Sequence[PluginRef]]]) -> None:
    places: dict[str, str] = {}
    for field, refs in named:
        for number, ref in enumerate(refs):
            place = f"{field}[{number}]"
            if ref.sha256 in places:
                raise InvalidArgument.of(place, str(ref), f"each file once: {places[ref.sha256]} is the same file")
            places[ref.sha256] = place


def newest_first(plugins: Iterable[Plugin]) -> list[Plugin]:
    """Returns plugins in the order of their names, of each the newest version first."""
    return sorted(plugins, key=cmp_to_key(compared))


def compared(plugin: Plugin, other: Plugin) -> int:
    """Compares two plugins in the order of `newest_first`: below 0 if the first comes before the second."""
    if plugin.plugin != other.plugin:
        return -1 if plugin.plugin < other.plugin else 1
    mine, its = (ordered(plugin.version), plugin.version), (ordered(other.version), other.version)
    return (mine < its) - (mine > its)
