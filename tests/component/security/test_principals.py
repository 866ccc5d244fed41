"""Worker clusters of managed brokers are principals of their own: each tries the other's names, and gets nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from keelman.api.access.v1.authority_service_pb2 import GetAuthorityRequest, RotateAuthorityRequest
from keelman.api.connect.v1 import broker_cluster_pb2 as brokers
from keelman.api.connect.v1 import worker_cluster_pb2 as clusters
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters_pb
from keelman.api.connect.v1.operation_pb2 import OPERATION_STATE_SUCCEEDED
from keelman.kafka.feed import WORKER_REPORTS, event_topic
from keelman.rpc.generated import stub_of
from keelman.runtime.home import Home
from support.eventually import eventually
from support.security.principals import SECONDS, Holder, create_brokers, has_records, holder_of, run_workers, running
from support.state.definitions import FILE_SOURCE, Definitions
from support.state.service import Clients
from support.state.trust import Installation

pytestmark = pytest.mark.component
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
REFUSED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}  # fmt: skip
Try = Callable[["Holder"], None]


def forge(holder: Holder) -> None:
    where = (ResourceType.TOPIC, "*", ResourcePatternType.LITERAL, "User:*", "*")
    holder.result(holder.admin.create_acls([AclBinding(*where, AclOperation.ALL, AclPermissionType.ALLOW)]))


def reconfigure(holder: Holder) -> None:
    entry = ConfigEntry("log.cleaner.threads", "2", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, "0", incremental_configs=[entry])
    holder.result(holder.admin.incremental_alter_configs([resource]))


TRIES: dict[str, Try] = {
    "another's configurations, with passwords": lambda h: h.read("b.connect-configs"),
    "another's offsets": lambda h: h.write("b.connect-offsets"),
    "another's statuses": lambda h: h.write("b.connect-status"),
    "another's group": lambda h: h.join("keelman-b", "lines"),
    "a group that no one allowed": lambda h: h.join("anything", "lines"),
    "the offsets of another's workers": lambda h: h.result(
        h.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("keelman-b")])
    ),
    "another's transactional ids": lambda h: h.begin("keelman-b-from-file-0"),
    "the transactional id of another's leader": lambda h: h.begin("connect-cluster-keelman-b"),
    "events": lambda h: h.read(event_topic("worker_cluster")),
    "false events": lambda h: h.write(event_topic("worker_cluster")),
    "reports": lambda h: h.read(WORKER_REPORTS),
    "the groups of all": lambda h: h.read("__consumer_offsets"),
    "rules of its own": forge,
    "configurations of a broker": reconfigure,
    "another's topic deleted": lambda h: h.result(h.admin.delete_topics(["b.connect-status"])),
    "a topic of keelman": lambda h: h.result(h.admin.create_topics([NewTopic("keelman.events.x", 1, 1)])),
}


def refused(attempt: Try, holder: Holder) -> bool:
    """Whether the brokers refuse it; raises an assertion where they allow it."""
    try:
        attempt(holder)
    except KafkaException as error:
        return error.args[0].code() in REFUSED
    return False


async def test_a_worker_cluster_reaches_its_own_names_alone(tmp_path: Path) -> None:
    read, written = tmp_path / "in.txt", tmp_path / "out.txt"
    read.write_text("one\ntwo\n")
    async with running(tmp_path) as installed:
        await _tried(installed, read, written)


async def _tried(installed: Installation, read: Path, written: Path) -> None:
    clients, home = Clients(installed.to_gateway), installed.homes["n1"]
    made = await create_brokers(clients)
    assert made.spec.managed.access == brokers.BrokerAccess.BROKER_ACCESS_RULES
    await run_workers(clients, "a", "b")

    strings = dict.fromkeys(("key.converter", "value.converter"), STRINGS)
    source = {"connector.class": FILE_SOURCE, "file": str(read), "topic": "lines", **strings}
    sink = {"connector.class": FILE_SINK, "file": str(written), "topics": "lines", **strings}
    for cluster, name, config in (
        ("a", "from-file", source),
        ("b", "others", source | {"topic": "others"}),
        ("b", "to-file", sink),
    ):
        definitions = Definitions(clients, cluster)
        await definitions.create(name, config)
        assert (await definitions.apply(name)).state == OPERATION_STATE_SUCCEEDED
    await eventually(lambda: written.exists() and written.read_text() == "one\ntwo\n", what="both clusters copy")

    mine = await holder_of(clients, home, "worker/a/0")
    writer = await holder_of(clients, home, "worker/a/0", "reports.properties")
    await asyncio.to_thread(mine.read, "lines")
    await asyncio.to_thread(mine.write, "lines")
    await asyncio.to_thread(mine.begin, "keelman-a-x-0")
    for what, attempt in TRIES.items():
        assert await asyncio.to_thread(refused, attempt, mine), what
    for what, attempt in (TRIES | {"topics of users": lambda h: h.read("lines")}).items():
        assert await asyncio.to_thread(refused, attempt, writer), f"reports: {what}"
    listed = set((await asyncio.to_thread(mine.admin.list_topics, timeout=SECONDS)).topics)
    assert {"lines", "others", "a.connect-configs"} <= listed
    assert not [topic for topic in listed if topic.startswith(("b.", "keelman.", "__"))]

    await _narrowed(clients, mine)
    await _deleted(clients, home, mine)


async def _narrowed(clients: Clients, mine: Holder) -> None:
    """Fewer topics are allowed while the cluster runs."""
    await asyncio.to_thread(mine.read, "others")
    pids = {w.name: w.status.pid for w in (await clients.workloads()).values()}
    spec = clusters.WorkerClusterSpec(allowed_topics=["lines*"])
    request = clusters_pb.UpdateWorkerClusterRequest(name="a", spec=spec)
    request.update_mask.paths.append("allowed_topics")
    await clients.clusters.UpdateWorkerCluster(request)

    async def narrow() -> bool:
        return await asyncio.to_thread(refused, lambda h: h.read("others"), mine)

    await eventually(narrow, what="other topics are refused")
    await asyncio.to_thread(mine.read, "lines")
    assert {w.name: w.status.pid for w in (await clients.workloads()).values()} == pids


async def _deleted(clients: Clients, home: Home, mine: Holder) -> None:
    """The topics of a deleted cluster stay, and stay closed; its certificate is of no use, also to the next cluster of
    its name."""
    theirs = await holder_of(clients, home, "worker/b/0")
    await asyncio.to_thread(theirs.read, "b.connect-configs")
    await clients.delete_workers("b")

    async def closed() -> bool:
        return await asyncio.to_thread(refused, lambda h: h.read("b.connect-configs"), theirs)

    await eventually(closed, what="the certificate of a deleted cluster is refused")
    assert await asyncio.to_thread(refused, TRIES["another's configurations, with passwords"], mine)
    await run_workers(clients, "b")
    assert await asyncio.to_thread(refused, lambda h: h.read("b.connect-configs"), theirs)
    again = await holder_of(clients, home, "worker/b/0")
    await asyncio.to_thread(again.read, "b.connect-configs")


@pytest.mark.slow
async def test_a_worker_cluster_follows_another_ca(tmp_path: Path) -> None:
    read = tmp_path / "in.txt"
    read.write_text("one\n")
    async with running(tmp_path) as installed:
        clients, home = Clients(installed.to_gateway), installed.homes["n1"]
        await create_brokers(clients)
        await run_workers(clients, "a")
        definitions = Definitions(clients, "a")
        await definitions.create("from-file", {"connector.class": FILE_SOURCE, "file": str(read), "topic": "lines"})
        assert (await definitions.apply("from-file")).state == OPERATION_STATE_SUCCEEDED
        first = await holder_of(clients, home, "worker/a/0")
        authority = stub_of(installed.to_gateway, "access", "authority")

        async def all_follow() -> bool:
            present = (await authority.GetAuthority(GetAuthorityRequest())).authority
            behind = [follower.name for follower in present.followers if not follower.ready]
            assert not behind, behind
            return True

        for _ in range(3):
            await authority.RotateAuthority(RotateAuthorityRequest())
            await eventually(all_follow, every=0.5, what="all follow")
        with read.open("a") as file:
            file.write("two\n")
        second = await holder_of(clients, home, "worker/a/0")
        await eventually(lambda: has_records(second, "lines", 2), what="it copies on")
        await eventually(lambda: asyncio.to_thread(first.is_shut_out), what="the former CA is refused")
