"""`--wait` ends early if the awaited state cannot be reached until a user changes something."""

from __future__ import annotations

from typing import Any, cast

import pytest

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerCluster, BrokerClusterStatus
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster, WorkerClusterStatus
from keelman.api.connect.v1.worker_pb2 import Worker
from keelman.api.node.v1.workload_pb2 import WorkloadStatus
from keelman.cli.client.effects import wait_for
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.patience import Patience, why_stuck
from keelman.cli.exits import FAILED, NotReached, exit_code_of
from keelman.cli.kinds import BROKER_CLUSTERS, CONNECTORS, WORKER_CLUSTERS, WORKERS, Kind
from keelman.model.errors import Unavailable

WHY = "worker/demo/0: keelman.jaas.file: '/x' cannot be read"


def cluster(state: str = "DEGRADED", message: str = WHY, *, stuck: bool = False) -> WorkerCluster:
    status = WorkerClusterStatus(state=f"CLUSTER_STATE_{state}", message=message, wanted_workers=1, stuck=stuck)
    return WorkerCluster(name="demo", status=status)


def worker(reason: str, state: str = "FAILED") -> Worker:
    return Worker(name="demo/0", process=WorkloadStatus(state=f"WORKLOAD_STATE_{state}", reason=reason, message="why"))


def test_why_waiting_is_no_help() -> None:
    assert why_stuck(WORKER_CLUSTERS, cluster(stuck=True)) == WHY
    assert why_stuck(WORKER_CLUSTERS, cluster()) == ""
    assert why_stuck(BROKER_CLUSTERS, BrokerCluster(status=BrokerClusterStatus(stuck=True))) == "it failed"
    assert why_stuck(WORKERS, worker("REFUSED")) == "why"
    assert why_stuck(WORKERS, worker("EXITED")) == ""
    assert why_stuck(WORKERS, worker("REFUSED", "STARTING")) == ""


def test_what_was_before_a_change_is_given_a_moment() -> None:
    now = 0.0
    patience = Patience(1.0, lambda: now)
    patience.check(WORKER_CLUSTERS, "demo", cluster(stuck=True))
    now = 0.9
    patience.check(WORKER_CLUSTERS, "demo", cluster("STARTING", ""))
    patience.check(WORKER_CLUSTERS, "demo", cluster(stuck=True))
    now = 1.5
    patience.check(WORKER_CLUSTERS, "demo", cluster(stuck=True))
    now = 2.0
    with pytest.raises(NotReached, match=r"worker-cluster/demo does not come up: worker/demo/0: keelman.jaas.file"):
        patience.check(WORKER_CLUSTERS, "demo", cluster(stuck=True))


class Answers:
    """A gateway that returns the answers of a list, then repeats the last."""

    def __init__(self, *answers: Any, cluster: WorkerCluster | None = None) -> None:
        self.answers, self.cluster = list(answers), cluster

    async def get(self, kind: Kind, name: str) -> Any:
        if kind is WORKER_CLUSTERS and self.cluster is not None:
            return self.cluster
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def list(self, kind: Kind, **more: Any) -> Any:
        return []


async def waited(gateway: Answers, verb: str, kind: Kind, name: str) -> Any:
    return await wait_for(cast("Gateway", gateway), verb, kind, name, seconds=60)


async def test_a_start_that_cannot_succeed_ends_the_wait_with_exit_code_1() -> None:
    # A worker that crashed is started again, and may come up.
    gateway = Answers(
        cluster("STARTING", ""), cluster(message="worker/demo/0: was ended by SIGKILL"), cluster(stuck=True)
    )
    with pytest.raises(NotReached) as raised:
        await waited(gateway, "start", WORKER_CLUSTERS, "demo")
    assert exit_code_of(raised.value) == FAILED
    assert WHY in raised.value.message


async def test_a_worker_that_refuses_ends_the_wait_for_its_restart() -> None:
    with pytest.raises(NotReached, match="worker/demo/0 does not come up: why"):
        await waited(Answers(worker("EXITED"), worker("REFUSED")), "restart", WORKERS, "demo/0")


NO_WORKER = Unavailable("worker cluster 'demo' has no running worker", reason="NO_RUNNING_WORKER")


@pytest.mark.parametrize("worker_cluster", [cluster(stuck=True), cluster("STOPPED", "")])
async def test_a_connector_without_workers_is_not_waited_for(worker_cluster: WorkerCluster) -> None:
    with pytest.raises(NotReached):
        await waited(Answers(NO_WORKER, cluster=worker_cluster), "start", CONNECTORS, "demo/x")


async def test_a_connector_whose_worker_comes_again_is_waited_for() -> None:
    gateway = Answers(NO_WORKER, NO_WORKER, Unavailable("the gateway is gone"), cluster=cluster())
    with pytest.raises(Unavailable, match="the gateway"):
        await waited(gateway, "start", CONNECTORS, "demo/x")
