"""Lists the classes that workers found in plugins, as they reported it."""

from __future__ import annotations

from keelman.api.connect.v1 import plugin_pb2
from keelman.model.workload import WorkloadKind
from keelman.state.nouns.parts import NounParts


def worker_plugins(parts: NounParts, cluster: str) -> list[plugin_pb2.WorkerPlugin]:
    """Returns the reports of a cluster's workers, or of all workers, on plugins; equal reports once. Raises
    NotFound."""
    snapshot = parts.store.snapshot
    if cluster:
        snapshot.worker_cluster(cluster)
    by_key: dict[str, plugin_pb2.WorkerPlugin] = {}
    for name in [cluster] if cluster else sorted(snapshot.worker_clusters):
        for worker in snapshot.workloads_in(WorkloadKind.WORKER, name):
            for plugin in parts.reports.plugins(worker):
                key = worker_plugin_key(plugin)
                message = by_key.setdefault(key, plugin_pb2.WorkerPlugin())
                if not message.workers:
                    message.CopyFrom(plugin)
                message.workers.append(worker.name.partition("/")[2])
    return list(by_key.values())


def worker_plugin_key(worker_plugin: plugin_pb2.WorkerPlugin) -> str:
    """Returns the key for lists: unusable classes first, then by type and class."""
    usable = "1" if not worker_plugin.problem else "0"
    return "\0".join(
        (
            usable,
            worker_plugin.type,
            worker_plugin.class_name,
            worker_plugin.version,
            worker_plugin.plugin,
            worker_plugin.path,
            worker_plugin.problem,
        )
    )
