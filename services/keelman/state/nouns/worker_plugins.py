"""Lists the classes that workers found in plugins, as they reported it."""

from __future__ import annotations

from keelman.api.connect.v1 import plugin_pb2
from keelman.model.workload import WorkloadKind
from keelman.state.nouns.parts import Parts


def worker_plugins(parts: Parts, cluster: str) -> list[plugin_pb2.WorkerPlugin]:
    """Returns the reports of a cluster's workers, or of all workers, on plugins; equal reports once. Raises
    NotFound."""
    snapshot = parts.store.snapshot
    if cluster:
        snapshot.worker_cluster(cluster)
    found: dict[str, plugin_pb2.WorkerPlugin] = {}
    for name in [cluster] if cluster else sorted(snapshot.worker_clusters):
        for worker in snapshot.workloads_in(WorkloadKind.WORKER, name):
            for one in parts.reports.plugins(worker):
                key = worker_plugin_key(one)
                made = found.setdefault(key, plugin_pb2.WorkerPlugin())
                if not made.workers:
                    made.CopyFrom(one)
                made.workers.append(worker.name.partition("/")[2])
    return list(found.values())


def worker_plugin_key(one: plugin_pb2.WorkerPlugin) -> str:
    """Returns the key for lists: unusable classes first, then by type and class."""
    usable = "1" if not one.problem else "0"
    return "\0".join((usable, one.type, one.class_name, one.version, one.plugin, one.path, one.problem))
