"""The state service removes a worker of a lost node from its group: a real broker's, which another member leads."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.kafka.clients import low_level_client
from keelman.kafka.groups import protocol as codes
from keelman.kafka.groups.connect_protocol import (
    PROTOCOL,
    PROTOCOL_TYPE,
    Metadata,
    decode_metadata,
    encode_assignment,
    encode_metadata,
)  # fmt: skip
from keelman.kafka.groups.farewell import client_id_of
from keelman.kafka.groups.protocol import GroupClient, Joined
from keelman.model.cluster import ExternalBrokers, WorkerClusterSpec
from keelman.model.errors import Unavailable
from keelman.model.work import MemberAssignment
from keelman.model.workload import Goal, WorkerSpec, Workload
from keelman.state.brokers.farewells import Farewells
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.resources.snapshot import WORKLOAD
from keelman.state.resources.transaction import Change
from support.eventually import eventually
from support.state.stores import open_store

pytestmark = pytest.mark.component
LONG_MS = 120_000
"""No session ends while the test runs."""
LOST, LEADER = "203.0.113.9:8083", "127.0.0.1:8083"


@contextlib.asynccontextmanager
async def member_at(bootstrap: str, group: str, worker: str) -> AsyncIterator[GroupClient]:
    """A client that queries a worker's place in its group."""
    properties = {"bootstrap.servers": bootstrap}
    async with low_level_client(properties, client_id=client_id_of(worker), timeout_ms=LONG_MS) as client:
        yield GroupClient(client, group, session_ms=LONG_MS, rebalance_ms=LONG_MS)


async def joined(group: GroupClient, worker: str, member: str = "") -> Joined:
    metadata = encode_metadata(Metadata(f"http://{worker}", 0))

    async def known() -> bool:
        with contextlib.suppress(Unavailable):  # a fresh broker creates the topic of groups first
            return await group.describe() is not None
        return False

    await eventually(known, what="the coordinator answers")
    joining = await group.join(member, PROTOCOL_TYPE, [(PROTOCOL, metadata)])
    if joining.error == codes.MEMBER_ID_REQUIRED:
        joining = await group.join(joining.member, PROTOCOL_TYPE, [(PROTOCOL, metadata)])
    assert joining.error == codes.NONE
    return joining


@pytest.mark.parametrize("delay", ["3000", "", "0"])
async def test_a_worker_of_a_lost_node_leaves_and_a_leader_that_waits_hears_that_it_does_not_come_back(
    bootstrap: str, tmp_path: Path, delay: str
) -> None:
    name = f"lost-{uuid.uuid4().hex[:8]}"
    properties = {"scheduled.rebalance.max.delay.ms": delay} if delay else {}
    orders: list[dict[str, bool]] = []
    async with contextlib.AsyncExitStack() as stack:
        group = await stack.enter_async_context(member_at(bootstrap, f"keelman-{name}", LEADER))
        lost = await stack.enter_async_context(member_at(bootstrap, f"keelman-{name}", LOST))
        store = await stack.enter_async_context(open_store(str(tmp_path / "state.db")))
        async with store.write() as tx:
            broker_clusters.create(tx, "brokers", ExternalBrokers(bootstrap))
            worker_clusters.create(tx, name, WorkerClusterSpec("brokers", count=1, properties=properties))

        async def lead() -> None:
            joining = await joined(group, LEADER)
            while True:
                own = {m: decode_metadata(raw) for m, raw in joining.members}
                orders.append({m.url: m.own is not None and m.own.leaving for m in own.values()})
                answer = encode_assignment(MemberAssignment(joining.leader, f"http://{LEADER}", 0, (), (), 0))
                await group.sync(joining.generation, joining.member, [(member, answer) for member in own])

                async def over(joined_node: Joined = joining) -> bool:
                    return await group.heartbeat(joined_node.generation, joined_node.member, seconds=30) != codes.NONE

                await eventually(over, seconds=LONG_MS / 1000, what="a next round")
                joining = await joined(group, LEADER, joining.member)

        leading = asyncio.create_task(lead())
        try:
            await eventually(lambda: bool(orders), what="one leads")
            place = await joined(lost, LOST)
            assert place.leader != place.member
            await lost.sync(place.generation, place.member, [])  # it sends nothing from now on
            farewells = Farewells(store)
            saying = asyncio.create_task(farewells.run())
            spec = WorkerSpec(name, "203.0.113.9", 8083, {}, "203.0.113.9:7430")
            worker = Workload(f"worker/{name}/0", "n9", 1, Goal.RUNNING, spec, has_run=True)
            farewells.changed([Change(WORKLOAD, worker.name, worker, None)])
            here, there = f"http://{LEADER}", f"http://{LOST}"
            expected = {here: False, there: True}
            waits = delay not in ("", "0")
            if waits:
                await eventually(lambda: expected in orders, what="the leader notices it")
            await eventually(lambda: orders[-1] == {here: False}, what="it is alone")
            assert (expected in orders) == waits
            assert {m.client_id for m in (await group.describe()).members} == {client_id_of(LEADER)}
            saying.cancel()
        finally:
            leading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await leading
