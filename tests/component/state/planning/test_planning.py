"""Plans, rollouts, drains and ports through the service's API, with obedient agents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import (
    broker_cluster_pb2,
    broker_cluster_service_pb2,
    origin_pb2,
    worker_cluster_pb2,
    worker_cluster_service_pb2,
)
from keelman.api.node.v1 import node_service_pb2, plan_pb2, plan_service_pb2, plan_service_pb2_grpc, workload_pb2
from keelman.model.errors import FailedPrecondition, InvalidArgument, KeelmanError
from keelman.rpc.channels import channel
from keelman.state.nouns import plan as plans
from support.eventually import eventually
from support.state.service import Agent, Clients, state_in_loop

pytestmark = pytest.mark.component
workers_pb = worker_cluster_service_pb2


class Api:
    """A state service's clients, plans among them."""

    def __init__(self, clients: Clients, connection: grpc.aio.Channel) -> None:
        self.clients = clients
        self.plans = plan_service_pb2_grpc.PlanServiceStub(connection)

    async def list_plans(self, **request: object) -> plan_service_pb2.ListPlansResponse:
        return await self.plans.ListPlans(plan_service_pb2.ListPlansRequest(**request))

    async def update(self, name: str, *fields: str, **spec: object) -> worker_cluster_pb2.WorkerCluster:
        request = workers_pb.UpdateWorkerClusterRequest(
            name=name, spec=worker_cluster_pb2.WorkerClusterSpec(**spec), update_mask=FieldMask(paths=fields or [*spec])
        )
        return (await self.clients.clusters.UpdateWorkerCluster(request)).worker_cluster

    async def runs(self, name: str, count: int) -> None:
        async def ready() -> bool:
            status = (await self.clients.worker_cluster(name)).status
            return status.ready_workers == count and not status.HasField("rollout")

        await eventually(ready, what=f"{count} workers of {name} run")


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with state_in_loop(tmp_path) as (clients, port), channel(f"127.0.0.1:{port}") as connection:
        await clients.create_external("ext", "127.0.0.1:1")
        yield Api(clients, connection)


async def test_plans_are_listed_with_their_reasons_and_the_newest_are_kept(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "KEPT", 4)
    await api.clients.create_workers("demo", brokers="ext", count=1)
    async with Agent(api.clients, "n1"):
        await api.clients.start_workers("demo")
        await api.runs("demo", 1)
        (first,) = (await api.list_plans()).plans
        placed = {(c.workload, c.action, c.node, c.generation) for c in first.changes}
        assert placed == {(n, plan_pb2.PLAN_ACTION_PLACE, "n1", 1) for n in ("spark/n1", "worker/demo/0")}
        for count in (2, 1, 3):
            await api.update("demo", count=count)
            await api.runs("demo", count)
        mine = (await api.list_plans(workload="worker/demo/1")).plans
        assert [(c.action, c.reason) for p in mine for c in p.changes if c.workload == "worker/demo/1"][-2:] == [
            (plan_pb2.PLAN_ACTION_REMOVE, "count is 1"),
            (plan_pb2.PLAN_ACTION_PLACE, "count is 2"),
        ]
        everything = (await api.list_plans()).plans
        revisions = [p.revision for p in everything]
        assert revisions == sorted(revisions, reverse=True)
        assert len(revisions) == 4, "the oldest is forgotten"
        page = await api.list_plans(page_size=3)
        rest = await api.list_plans(page_size=3, page_token=page.next_page_token)
        assert [*page.plans, *rest.plans] == list(everything)
        assert not rest.next_page_token
        with pytest.raises(InvalidArgument, match="page_token"):
            await api.list_plans(page_token="MXg=")


async def test_all_workers_are_started_again_one_by_one(api: Api) -> None:
    await api.clients.create_workers("demo", brokers="ext", count=2)
    request = workers_pb.RestartWorkerClusterRequest(name="demo")
    with pytest.raises(FailedPrecondition, match="start it"):
        await api.clients.clusters.RestartWorkerCluster(request)
    async with Agent(api.clients, "n1"):
        await api.clients.start_workers("demo")
        await api.runs("demo", 2)
        answer = await api.clients.clusters.RestartWorkerCluster(request)
        assert answer.worker_cluster.status.rollout.state == worker_cluster_pb2.ROLLOUT_STATE_ROLLING
        await api.runs("demo", 2)
        workers = [w for n, w in (await api.clients.workloads()).items() if n.startswith("worker/")]
        assert [w.generation for w in workers] == [2, 2]
        workloads = [c.workload for p in (await api.list_plans()).plans[:2] for c in p.changes]
        assert workloads == ["worker/demo/1", "worker/demo/0"], "a plan each"


async def test_a_rollout_halts_and_goes_on_with_the_next_spec(api: Api) -> None:
    await api.clients.create_workers("demo", brokers="ext", count=2)
    async with Agent(api.clients, "n1") as agent:
        await api.clients.start_workers("demo")
        await api.runs("demo", 2)
        agent.special["worker/demo/0"] = workload_pb2.WorkloadStatus(
            state="WORKLOAD_STATE_FAILED", generation=2, reason="EXITED", message="no such topic"
        )
        changed = await api.update("demo", properties={"offset.flush.interval.ms": "1"})
        assert changed.status.rollout.state == worker_cluster_pb2.ROLLOUT_STATE_ROLLING, "reported with the answer"

        async def halted() -> worker_cluster_pb2.Rollout | None:
            rollout = (await api.clients.worker_cluster("demo")).status.rollout
            return rollout if rollout.state == worker_cluster_pb2.ROLLOUT_STATE_HALTED else None

        cluster = await eventually(halted)
        assert cluster is not None
        assert (cluster.worker, cluster.message, cluster.updated_workers, cluster.workers) == (
            "demo/0",
            "no such topic",
            0,
            2,
        )
        assert (await api.clients.workloads())["worker/demo/1"].generation == 1
        await api.update("demo", description="words change nothing")
        assert await halted()
        await api.update("demo", properties={"offset.flush.interval.ms": "2"})
        await api.runs("demo", 2)
        assert (await api.clients.workloads())["worker/demo/1"].generation == 2


async def test_what_is_pinned_to_a_drained_node_is_named(api: Api) -> None:
    async with Agent(api.clients, "n1", host="127.0.0.1"), Agent(api.clients, "n2", host="127.0.0.2"):
        await api.clients.create_workers("pinned", brokers="ext", nodes={"names": ["n1"]})
        await api.clients.create_workers("free", brokers="ext", count=2)
        for name, count in (("pinned", 1), ("free", 2)):
            await api.clients.start_workers(name)
            await api.runs(name, count)
        await api.clients.nodes.DrainNode(node_service_pb2.DrainNodeRequest(name="n1"))

        async def moved() -> bool:
            workloads = (await api.clients.workloads()).values()
            return {w.name for w in workloads if w.node == "n1"} == {"spark/n1", "worker/pinned/0"}

        await eventually(moved)
        await api.runs("free", 2)
        node = (await api.clients.nodes.GetNode(node_service_pb2.GetNodeRequest(name="n1"))).node
        assert list(node.status.pinned_workloads) == ["worker/pinned/0"]


async def test_a_port_a_group_and_an_origin_have_one_holder(api: Api) -> None:
    origin = origin_pb2.Origin(api="ohara", scope="default", key="wk")
    await api.clients.create_workers("held", brokers="ext", count=1, port=9000, origin=origin)

    async def refusal(**spec: object) -> KeelmanError:
        with pytest.raises(KeelmanError) as refused:
            await api.clients.create_workers("new", brokers="ext", count=1, **spec)
        return refused.value

    taken = await refusal(metrics_port=9000)
    holder = {"kind": "worker_cluster", "name": "held"}
    holder |= {"origin_api": "ohara", "origin_scope": "default", "origin_key": "wk"}
    assert (taken.reason, taken.metadata) == ("PORT_IN_USE", {"port": "9000", **holder})
    stored_refusal = await refusal(origin=origin)
    assert (stored_refusal.reason, stored_refusal.metadata["name"]) == ("ORIGIN_IN_USE", "held")
    group = await refusal(properties={"group.id": "keelman-held"})
    assert (group.reason, group.metadata["worker_cluster"]) == ("GROUP_IN_USE", "held")
    await api.clients.create_workers("new", brokers="ext", count=1)
    with pytest.raises(FailedPrecondition, match="9000"):
        await api.update("new", port=9000)
    await api.update("held", port=0)
    await api.update("new", port=9000)


async def test_other_servers_may_not_bring_two_groups_of_one_name_together(api: Api) -> None:
    await api.clients.create_external("other", "127.0.0.2:1")
    group = {"group.id": "one"}
    await api.clients.create_workers("mine", brokers="ext", count=1, properties=group)
    await api.clients.create_workers("theirs", brokers="other", count=1, properties=group)

    async def point(servers: str) -> None:
        spec = broker_cluster_pb2.BrokerClusterSpec(
            external=broker_cluster_pb2.ExternalBrokers(bootstrap_servers=servers)
        )
        await api.clients.brokers.UpdateBrokerCluster(
            broker_cluster_service_pb2.UpdateBrokerClusterRequest(name="other", spec=spec)
        )

    with pytest.raises(FailedPrecondition, match="'one' is the group of worker cluster 'mine'"):
        await point("127.0.0.2:1,127.0.0.1:1")
    assert (await api.clients.broker_cluster("other")).spec.external.bootstrap_servers == "127.0.0.2:1"
    await point("127.0.0.3:1")
