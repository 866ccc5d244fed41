"""Workloads: processes that the agents run."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

from keelman.api.node.v1 import workload_pb2
from keelman.api.node.v1 import workload_service_pb2 as pb
from keelman.api.node.v1 import workload_service_pb2_grpc as grpc
from keelman.model.errors import InvalidArgument
from keelman.model.workload import (
    BrokerSpec,
    ProcessState,
    SparkSpec,
    WorkerSpec,
    Workload,
    WorkloadKind,
    WorkloadSpec,
    WorkloadStatus,
)
from keelman.rpc.enums import word
from keelman.rpc.mapping import message_of, value_of
from keelman.state.nouns.parts import NounParts
from keelman.state.resources.hidden import shown_spec
from keelman.state.resources.limits import limits_message
from keelman.state.resources.log_delivery import problem_messages, targets_message
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, list_page, page_of
from keelman.state.resources.snapshot import WORKLOAD
from keelman.state.resources.transaction import Transaction


def status_message(status: WorkloadStatus) -> workload_pb2.WorkloadStatus:
    """Returns the message of an agent's report."""
    return message_of(
        workload_pb2.WorkloadStatus, status, pid=status.pid or None, log_problems=problem_messages(status)
    )


def status_of(message: workload_pb2.WorkloadStatus) -> WorkloadStatus:
    """Returns an agent's report; raises InvalidArgument for a state that has no meaning."""
    name = word(workload_pb2.WorkloadState, message.state)
    if name not in ProcessState.__members__:
        raise InvalidArgument.of("report.statuses.state", name, ", ".join(ProcessState))
    return value_of(WorkloadStatus, message)


def spec_message(workload_spec: WorkloadSpec) -> workload_pb2.WorkloadSpec:
    """Returns the message of a workload's spec, complete."""
    match workload_spec:
        case BrokerSpec():
            return workload_pb2.WorkloadSpec(broker=message_of(workload_pb2.BrokerWorkload, workload_spec))
        case SparkSpec():
            return workload_pb2.WorkloadSpec(spark=message_of(workload_pb2.SparkWorkload, workload_spec))
        case WorkerSpec():
            targets = targets_message(workload_spec.log_targets)
            return workload_pb2.WorkloadSpec(
                worker=message_of(workload_pb2.WorkerWorkload, workload_spec, log_targets=targets)
            )


def workload_message(workload: Workload) -> workload_pb2.Workload:
    """Returns a workload as users and events see it: with its placement and, when there is one, its status."""
    return message_of(
        workload_pb2.Workload,
        workload,
        spec=spec_message(shown_spec(workload.spec)),
        status=status_message(workload.status) if workload.status is not None else None,
        limits=limits_message(workload.limits),
    )


def assignment_message(workload: Workload) -> workload_pb2.Workload:
    """Returns a workload as its agent gets it, with its secrets."""
    message = workload_message(dataclasses.replace(workload, status=None))
    message.spec.CopyFrom(spec_message(workload.spec))
    return message


NOUN = Noun(Workload, workload_message)


def save(tx: Transaction, workload: Workload) -> Workload:
    """Stores a new or changed workload; a new one gets a uid."""
    if not workload.uid:
        old = tx.snapshot.workloads.get(workload.name)
        workload = dataclasses.replace(workload, uid=str(uuid.uuid4()) if old is None else old.uid)
    return tx.put(workload)


class WorkloadApi(NounApi[NounParts], grpc.WorkloadServiceServicer):
    """Workloads."""

    noun = WORKLOAD
    ListWorkloads = list_page

    def _page(self, request: pb.ListWorkloadsRequest) -> tuple[list[Workload], str]:
        snapshot, node, cluster = self._snapshot, request.node, request.worker_cluster
        names = [w.name for w in snapshot.workloads_on(node)] if node else snapshot.names(WORKLOAD)
        if cluster:
            names = sorted(w.name for w in snapshot.workloads_in(WorkloadKind.WORKER, cluster) if node in ("", w.node))
        return page_of(names, snapshot.workloads, request)

    def _shown(self, workload: Workload, request: Any) -> workload_pb2.Workload:
        return workload_message(self.parts.sessions.vital(workload))


API = WorkloadApi
