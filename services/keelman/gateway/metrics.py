"""Builds the gateway's metrics, with the state service's data on the worker clusters, read at each scrape."""

from __future__ import annotations

import psutil

from keelman.api.connect.v1.broker_cluster_pb2 import ClusterState
from keelman.gateway.state import State
from keelman.gateway.worker_figures import WorkerFigures
from keelman.model.errors import KeelmanError
from keelman.rpc.enums import word
from keelman.runtime.exposition import COUNTER, GAUGE, Exposition, Family, labels_of
from keelman.runtime.version import version

INFO = Family("keelman_gateway_info", GAUGE, "1, with the gateway's version as label.")
CPU = Family("keelman_gateway_cpu_seconds_total", COUNTER, "Processor time of the gateway.")
MEMORY = Family("keelman_gateway_memory_bytes", GAUGE, "Resident memory of the gateway.")
STATE_UP = Family("keelman_gateway_state_up", GAUGE, "1 while the state service answers.")
CLUSTER_STATE = Family("keelman_worker_cluster_state", GAUGE, "1 for the state that the worker cluster is in.")
READY = Family("keelman_worker_cluster_ready_workers", GAUGE, "Workers of the cluster that run.")
WANTED = Family("keelman_worker_cluster_wanted_workers", GAUGE, "Workers of the cluster that are to run.")
NEEDED = Family(
    "keelman_wanted_workers",
    GAUGE,
    "Workers that the cluster's load needs; without autoscaling, those that are to run.",
)
PROBLEMS = Family("keelman_worker_cluster_troubled_connectors", GAUGE, "Connectors with something failed or stalled.")


async def exposition(state: State, workers: WorkerFigures) -> bytes:
    """Returns the text for Prometheus, with the metrics of `workers` on their connectors."""
    out, process = Exposition(), psutil.Process()
    own = process.cpu_times()
    out.add(INFO, 1, labels_of({"version": version()}))
    out.add(CPU, own.user + own.system)
    out.add(MEMORY, process.memory_info().rss)
    try:
        clusters = await state.worker_clusters()
    except KeelmanError:
        out.add(STATE_UP, 0)
        return b"".join(out.families())
    out.add(STATE_UP, 1)
    for cluster in clusters:
        labels, status = labels_of({"worker_cluster": cluster.name}), cluster.status
        out.add(CLUSTER_STATE, 1, f'{labels},state="{word(ClusterState, status.state)}"')
        out.add(READY, status.ready_workers, labels)
        out.add(WANTED, status.wanted_workers, labels)
        out.add(NEEDED, status.needed_workers if status.HasField("needed_workers") else status.wanted_workers, labels)
        out.add(PROBLEMS, status.problem_connectors, labels)
    of_workers = await workers.text({c.name: list(c.status.rest_urls) for c in clusters})
    return b"".join(out.families()) + of_workers
