"""Workers: the workloads of worker clusters, as their users see them."""

from __future__ import annotations

from typing import Any

from keelman.api.connect.v1 import worker_pb2
from keelman.api.connect.v1 import worker_service_pb2 as pb
from keelman.api.connect.v1 import worker_service_pb2_grpc as grpc
from keelman.model.errors import FailedPrecondition
from keelman.model.workload import Goal, Workload, WorkloadKind
from keelman.rpc.server import Context
from keelman.state.clusters.worker_urls import rest_url
from keelman.state.nouns import workload as workloads
from keelman.state.nouns.parts import NounParts
from keelman.state.nouns.workload import status_message
from keelman.state.planning.worker_specs import tried_again
from keelman.state.resources.serving import NounApi, list_page, page_of, writing
from keelman.state.resources.snapshot import WORKLOAD
from keelman.state.resources.transaction import Transaction


def worker_message(workload: Workload, membership: worker_pb2.WorkerMembership | None) -> worker_pb2.Worker:
    """Returns the message of a worker: its workload as its user sees it."""
    return worker_pb2.Worker(
        name=workload.name.removeprefix("worker/"),
        worker_cluster=workload.cluster,
        node=workload.node,
        rest_url=rest_url(workload),
        process=status_message(workload.status) if workload.status is not None else None,
        membership=membership,
    )


def restart(tx: Transaction, name: str) -> Workload:
    """Gives one worker a new generation: its agent ends the old process and starts a new one."""
    worker = tx.snapshot.worker(name)
    if worker.goal is not Goal.RUNNING:
        raise FailedPrecondition(
            f"worker {name!r} has the goal {worker.goal}: start worker cluster {worker.cluster!r}",
            reason="NOT_RUNNING",
        )
    return workloads.save(tx, tried_again(worker))


class WorkerApi(NounApi[NounParts], grpc.WorkerServiceServicer):
    """Workers. Lists raise NotFound for an unknown worker cluster."""

    noun = "worker"
    ListWorkers = list_page

    @writing()
    def RestartWorker(self, tx: Transaction, request: pb.RestartWorkerRequest) -> Workload:
        """Restarts one worker."""
        return restart(tx, request.name)

    async def GetWorker(self, request: pb.GetWorkerRequest, context: Context) -> pb.GetWorkerResponse:
        """Returns one worker."""
        return pb.GetWorkerResponse(worker=self._shown(self._snapshot.worker(request.name)))

    def _page(self, request: pb.ListWorkersRequest) -> tuple[list[Workload], str]:
        snapshot, cluster = self._snapshot, request.worker_cluster
        names = snapshot.names(WORKLOAD)
        if cluster:
            snapshot.worker_cluster(cluster)
            names = sorted(w.name for w in snapshot.workloads_in(WorkloadKind.WORKER, cluster))
        return page_of(names, snapshot.workloads, request, lambda w: w.kind is WorkloadKind.WORKER)

    def _fields(self, workload: Workload, tx: Transaction) -> dict[str, Any]:
        return {self.noun: self._shown(workload)}

    def _shown(self, worker: Workload, request: Any = None) -> worker_pb2.Worker:
        reports = self.parts.reports
        message = worker_message(self.parts.sessions.vital(worker), reports.membership(worker))
        if (usage := reports.usage(worker)) is not None:
            message.usage.CopyFrom(usage)
        return message


API = WorkerApi
