"""Topics on a real broker: created, looked into, changed and deleted."""

import itertools

import pytest
from confluent_kafka import Producer

from keelman.api.connect.v1 import broker_cluster_service_pb2 as pb
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers
from keelman.api.connect.v1.broker_cluster_service_pb2_grpc import BrokerClusterServiceStub
from keelman.rpc.channels import channel
from support.gateway.ohara.clients import BAD_VALUE, DATA_CHECK, ILLEGAL_STATE, NO_SUCH, JsClient, OharaWorld, key

pytestmark = pytest.mark.component
NUMBERS = itertools.count()
BROKER = {"group": "default", "name": "kafka"}


@pytest.fixture(scope="module")
async def kafka(world: OharaWorld, bootstrap: str) -> JsClient:
    """A client of a system with a real broker, which was registered by gRPC."""
    async with channel(world.system.gateway.address) as to:
        spec = BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers=bootstrap))
        brokers = BrokerClusterServiceStub(to)
        await brokers.CreateBrokerCluster(pb.CreateBrokerClusterRequest(name="kafka", spec=spec))
    await world.js.reaches("brokers", "kafka", "RUNNING", seconds=300)
    return world.js


@pytest.fixture
def topic() -> str:
    """A topic's name that no other test has."""
    return f"t{next(NUMBERS)}"


async def test_a_topic_is_created_in_kafka_when_it_starts_and_deleted_when_it_stops(
    kafka: JsClient, group: str, topic: str, bootstrap: str
) -> None:
    fields = await kafka.create(
        "topics", group=group, name=topic, brokerClusterKey="kafka", numberOfPartitions=2, own=1
    )
    assert (fields["numberOfReplications"], fields["segment.bytes"], fields["segment.ms"]) == (1, 1 << 30, 604_800_000)
    assert (fields["partitionInfos"], fields["brokerClusterKey"], fields["own"]) == ([], BROKER, 1)
    assert "state" not in fields
    await kafka.act("topics", topic, "start", group)
    await kafka.act("topics", topic, "start", group)
    running = await kafka.reaches("topics", topic, "RUNNING", group)
    host, port = bootstrap.rsplit(":", 1)
    first, _ = running["partitionInfos"]
    assert (first["id"], first["leader"]["host"], first["leader"]["port"]) == (0, host, int(port))
    assert (first["replicas"], first["beginningOffset"], first["endOffset"]) == ([first["leader"]], 0, 0)
    assert [entry["name"] for entry in await kafka.list("topics", group=group, state="RUNNING")] == [topic]
    for method in ("PUT", "DELETE"):
        refused = await kafka.refused(method, f"/topics/{topic}", {} if method == "PUT" else None, group=group)
        assert (refused.code, refused.message) == (DATA_CHECK, f"type:topic  {key(topic, group)} MUST be stopped")
    await kafka.act("topics", topic, "stop", group)
    changed = await kafka.ok("PUT", f"/topics/{topic}", {"numberOfPartitions": 3}, group=group)
    assert (changed["numberOfPartitions"], changed["own"]) == (3, 1)
    assert "state" not in changed
    await kafka.act("topics", topic, "stop", group)
    await kafka.delete("topics", topic, group)
    assert (await kafka.refused("GET", f"/topics/{topic}", group=group)).code == NO_SUCH


async def test_what_cannot_be_is_refused(kafka: JsClient, group: str, topic: str) -> None:
    lost = await kafka.refused("POST", "/topics", {"group": group, "brokerClusterKey": {"group": group, "name": "no"}})
    assert (lost.code, lost.message) == (DATA_CHECK, f"type:broker {key('no', group)} does not exist ")
    assert (await kafka.refused("POST", "/topics", {"group": group})).message == "Set(brokerClusterKey) are required!!!"
    fields = {"group": group, "name": topic, "brokerClusterKey": "kafka"}
    none = await kafka.refused("POST", "/topics", {**fields, "numberOfPartitions": 0})
    assert none.message == "numberOfPartitions: the number must be [1, 2147483647], actual:0"
    await kafka.create("topics", **fields)
    again = await kafka.refused("POST", "/topics", fields)
    assert again.code == ILLEGAL_STATE
    assert (await kafka.refused("PUT", f"/topics/{topic}/pause", group=group)).status == 404
    await kafka.delete("topics", topic, group)
    await kafka.delete("topics", topic, group)


async def test_the_newest_records_are_shown_first(kafka: JsClient, group: str, topic: str, bootstrap: str) -> None:
    await kafka.create("topics", group=group, name=topic, brokerClusterKey="kafka")
    stopped = await kafka.refused("POST", f"/inspect/topics/{topic}", group=group)
    assert stopped.message == f"type:topic  {key(topic, group)} MUST be running"
    await kafka.act("topics", topic, "start", group)
    await kafka.reaches("topics", topic, "RUNNING", group)
    assert await kafka.ok("POST", f"/inspect/topics/{topic}", group=group) == {"messages": []}
    produced(bootstrap, f"{group}-{topic}", [b'{"n":%d}' % n for n in range(8)])
    answer = await kafka.ok("POST", f"/inspect/topics/{topic}", group=group, limit="3", timeout="5000")
    assert [(message["offset"], message["value"]) for message in answer["messages"]] == [
        (7, {"n": 7}),
        (6, {"n": 6}),
        (5, {"n": 5}),
    ]
    bad = await kafka.refused("POST", f"/inspect/topics/{topic}", group=group, limit="0")
    assert (bad.code, bad.message) == (BAD_VALUE, "the limit must be bigger than zero. actual:0")
    assert (await kafka.refused("POST", f"/inspect/topics/{topic}", group=group, limit="x")).code == BAD_VALUE
    unknown = await kafka.refused("POST", "/inspect/topics/none", group=group)
    assert unknown.message == f"type:topic {key('none', group)} does not exist "
    await kafka.act("topics", topic, "stop", group)
    await kafka.delete("topics", topic, group)


def produced(bootstrap: str, topic: str, values: list[bytes]) -> None:
    """Writes records."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(300) == 0
