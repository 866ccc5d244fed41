"""Finds the URLs at which the workers of a cluster answer Connect's REST, as the snapshot knows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keelman.model.cluster import ClusterGoal, WorkerEngine
from keelman.model.errors import FailedPrecondition, Unavailable
from keelman.model.workload import ProcessState, WorkerSpec, Workload, WorkloadKind
from keelman.state.reports.memberships import Memberships
from keelman.state.resources.store import ResourceStore


@dataclass(frozen=True, slots=True)
class WorkerUrls:
    """The lookup for a client of workers' REST."""

    store: ResourceStore
    reports: Memberships

    async def of(self, cluster: str) -> Sequence[str]:
        """Returns the URLs of the running workers of a cluster, members of their group first.

        Raises NotFound for an unknown worker cluster, FailedPrecondition (NOT_RUNNING) if it shall not run, Unavailable
        (NO_RUNNING_WORKER) when none of its workers runs.
        """
        worker_cluster = self.store.snapshot.worker_cluster(cluster)
        if worker_cluster.goal is not ClusterGoal.RUNNING:
            raise FailedPrecondition(
                f"worker cluster {cluster!r} is {worker_cluster.status.state}: start it",
                reason="NOT_RUNNING",
                metadata={"worker_cluster": cluster},
            )
        workers = self.store.snapshot.workloads_in(WorkloadKind.WORKER, cluster)
        running = [w for w in workers if w.is_in(ProcessState.RUNNING)]
        if not running:
            reason = f": {worker_cluster.status.message}" if worker_cluster.status.message else ""
            raise Unavailable(
                f"worker cluster {cluster!r} has no running worker{reason}",
                reason="NO_RUNNING_WORKER",
                metadata={"worker_cluster": cluster},
            )
        return [rest_url(w) for w in sorted(running, key=lambda w: not self._has_joined(w))]

    async def heeds_ids(self, cluster: str) -> bool:
        """Returns whether its workers do a request once by its id."""
        worker_cluster = self.store.snapshot.worker_clusters.get(cluster)
        return worker_cluster is not None and worker_cluster.spec.engine is WorkerEngine.KEELMAN

    def _has_joined(self, worker: object) -> bool:
        membership = self.reports.membership(worker)  # type: ignore[arg-type]
        return membership is not None and membership.joined


def rest_url(workload: Workload) -> str:
    """Returns the URL of a worker's REST API."""
    scheme = "https" if isinstance(workload.spec, WorkerSpec) and workload.spec.https else "http"
    return f"{scheme}://{workload.address}"
