"""Topics as resources: created, grown, configured, taken over and deleted on a real broker.

The operations succeed whatever happens to the state service meanwhile.
"""

import pytest

from keelman.api.connect.v1 import operation_pb2, topic_pb2
from keelman.api.connect.v1.operation_service_pb2 import CancelOperationRequest
from keelman.kafka.data_topics import create_topic, delete_topics
from keelman.kafka.topic_brokers import TopicBrokers
from keelman.kafka.topic_configs import TOPIC_CONFIGS, value_problem
from keelman.model.errors import FailedPrecondition, InvalidArgument, NotFound
from keelman.rpc.errors import translated
from support.eventually import eventually
from support.kafka.three_brokers import three_brokers
from support.state.service import state_in_loop
from support.state.topics import ABSENT, Topics, states

pytestmark = pytest.mark.component
SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED
FAILED = operation_pb2.OPERATION_STATE_FAILED


@pytest.fixture
async def topics(bootstrap, tmp_path):
    async with state_in_loop(tmp_path) as (clients, _):
        await clients.create_external("ext", bootstrap)
        yield Topics(clients, "ext")


async def seen(topics: Topics, name: str, state: int) -> topic_pb2.Topic:
    async def is_so() -> topic_pb2.Topic | None:
        topic = await topics.get(name)
        return topic if topic.status.state == state else None

    return await eventually(is_so, what=f"{name} is {topic_pb2.TopicState.Name(state)}")


async def test_a_topic_is_created_grown_configured_and_deleted(topics: Topics, bootstrap: str, name: str):
    created = await topics.create(name, topic=f"{name}.Data", partitions=2, config={"retention.ms": "60000"})
    assert (created.status.state, created.generation) == (topic_pb2.TOPIC_STATE_ABSENT, 1)

    operation = await topics.apply(name)
    assert operation.state == SUCCEEDED, operation
    assert list(states(operation).values()) == ["DONE", "DONE", "SKIPPED", "SKIPPED", "DONE"]
    topic = await topics.get(name)
    assert (topic.status.state, topic.status.applied_generation) == (topic_pb2.TOPIC_STATE_PRESENT, 1)
    brokers = topic.status.brokers
    assert [(p.partition, p.begin_offset, p.end_offset) for p in brokers.partitions] == [(0, 0, 0), (1, 0, 0)]
    assert f"{brokers.partitions[0].leader.host}:{brokers.partitions[0].leader.port}" == bootstrap
    assert (dict(brokers.config), list(topic.status.differences)) == ({"retention.ms": "60000"}, [])

    await topics.update(name, partitions=5, config={"segment.ms": "70000"})
    topic = await topics.get(name)
    assert topic.generation == 2
    assert list(topic.status.differences) == [
        "partitions: 2, specified 5",
        "config.segment.ms: '604800000', specified '70000'",
        "config.retention.ms: '60000', not specified",
    ]
    operation = await topics.apply(name)
    assert list(states(operation).values()) == ["DONE", "SKIPPED", "DONE", "DONE", "DONE"]
    assert operation.steps[3].message == "segment.ms=70000, retention.ms as by default"
    topic = await topics.get(name)
    assert (len(topic.status.brokers.partitions), dict(topic.status.brokers.config)) == (5, {"segment.ms": "70000"})
    with translated(), pytest.raises(InvalidArgument, match=r"spec.partitions: 3 is not legal: 5 or more"):
        await topics.update(name, partitions=3)
    with translated(), pytest.raises(FailedPrecondition, match="is on its brokers"):
        await topics.delete(name)

    operation = await topics.apply(name, ABSENT)
    assert (operation.state, list(states(operation).values())) == (SUCCEEDED, ["DONE", "DONE", "DONE"])
    assert (await topics.get(name)).status.state == topic_pb2.TOPIC_STATE_ABSENT
    async with TopicBrokers.open({"bootstrap.servers": bootstrap}) as opened:
        assert not (await opened.describe([f"{name}.Data"])).topics
    await topics.delete(name)
    with translated(), pytest.raises(NotFound):
        await topics.get(name)


async def test_a_topic_that_is_there_is_taken_over_as_it_is_or_not_at_all(topics: Topics, bootstrap: str, name: str):
    properties = {"bootstrap.servers": bootstrap}
    await create_topic(properties, name, partitions=3, settings={"retention.ms": "60000"})
    await topics.create(name, partitions=2, config={"cleanup.policy": "compact"})
    operation = await topics.apply(name)
    assert (operation.state, operation.error.reason) == (FAILED, "TOPIC_DIFFERS")
    assert operation.error.message == (
        f"topic {name} exists and differs from the resource: partitions: 3, specified 2; "
        "config.cleanup.policy: 'delete', specified 'compact'; config.retention.ms: '60000', not specified"
    )
    topic = await topics.get(name)
    assert (topic.status.state, topic.status.message) == (topic_pb2.TOPIC_STATE_FAILED, operation.error.message)
    operation = await topics.apply(name, ABSENT)
    assert operation.state == SUCCEEDED
    async with TopicBrokers.open(properties) as opened:
        assert (await opened.describe([name])).topics, "it was not the resource's to delete"

    await topics.update(name, partitions=3, config={"retention.ms": "60000"})
    operation = await topics.apply(name)
    assert (operation.state, operation.steps[1].state) == (SUCCEEDED, operation_pb2.OPERATION_STEP_STATE_SKIPPED)
    assert (await topics.get(name)).status.state == topic_pb2.TOPIC_STATE_PRESENT

    await delete_topics(properties, [name])
    missing = await seen(topics, name, topic_pb2.TOPIC_STATE_MISSING)
    assert "it was deleted without" in missing.status.message
    assert not missing.status.HasField("brokers")
    assert (await topics.apply(name)).state == SUCCEEDED
    assert (await topics.get(name)).status.state == topic_pb2.TOPIC_STATE_PRESENT
    await delete_topics(properties, [name])
    await seen(topics, name, topic_pb2.TOPIC_STATE_MISSING)
    await topics.delete(name)


async def test_brokers_refuse_and_cannot_be_asked(topics: Topics, name: str):
    await topics.create(name, replication_factor=3)
    operation = await topics.apply(name)
    assert (operation.state, operation.error.reason) == (FAILED, "INVALID_REPLICATION_FACTOR")
    assert f"topic {name} cannot be created: " in operation.error.message
    await topics.update(name, replication_factor=1)
    assert (await topics.apply(name)).state == SUCCEEDED
    assert (await topics.apply(name, ABSENT)).state == SUCCEEDED

    await topics.clients.create_external("gone", "127.0.0.1:1")
    gone = Topics(topics.clients, "gone")
    await gone.create(f"{name}-2")
    waiting = await gone.begin(f"{name}-2")

    async def waits() -> bool:
        topic = await gone.get(f"{name}-2")
        return topic.status.state == topic_pb2.TOPIC_STATE_APPLYING and "no broker answers" in topic.status.message

    await eventually(waits)
    await topics.clients.operations.CancelOperation(CancelOperationRequest(name=waiting))
    assert (await topics.ended(waiting)).state == operation_pb2.OPERATION_STATE_CANCELED
    assert (await gone.get(f"{name}-2")).status.state == topic_pb2.TOPIC_STATE_ABSENT
    await gone.delete(f"{name}-2")


async def test_the_keys_that_are_checked_are_those_of_the_brokers(bootstrap: str, name: str):
    properties = {"bootstrap.servers": bootstrap}
    await create_topic(properties, name, partitions=1)
    async with TopicBrokers.open(properties) as opened:
        answers = await eventually(lambda: opened.configs([name]))
    assert answers[name].keys() == TOPIC_CONFIGS.keys()
    assert {key: v.value for key, v in answers[name].items() if value_problem(key, v.value)} == {}
    await delete_topics(properties, [name])


async def test_three_brokers_agree_at_an_operations_end(tmp_path):
    async with three_brokers(tmp_path / "trio") as trio, state_in_loop(tmp_path / "state") as (clients, _):
        await clients.create_external("trio", trio.bootstrap)
        topics = Topics(clients, "trio")
        await topics.create("wide", partitions=6, replication_factor=3, config={"min.insync.replicas": "2"})
        for partitions in (6, 12):
            await topics.update("wide", partitions=partitions)
            operation = await topics.apply("wide")
            assert operation.state == SUCCEEDED, operation
            assert {len(partitions_known) for partitions_known in await as_known(trio, "wide")} == {partitions}
        parts = (await topics.get("wide")).status.brokers.partitions
        assert {part.leader.node_id for part in parts} == {1, 2, 3}
        assert all(sorted(b.node_id for b in part.in_sync_replicas) == [1, 2, 3] for part in parts)
        await topics.update("wide", partitions=0, config={})
        assert list((await topics.get("wide")).status.differences) == ["config.min.insync.replicas: '2', not specified"]
        assert (await topics.apply("wide", ABSENT)).state == SUCCEEDED
        assert await as_known(trio, "wide") == [{}, {}, {}], "no broker lists it any more"


async def as_known(trio, topic: str) -> list:
    """The partitions of a topic in each broker's metadata."""
    async with TopicBrokers.open({"bootstrap.servers": trio.bootstrap}) as opened:
        answers = await opened.described_by_each(topic)
    assert len(answers) == 3
    return [answer.topics[topic].partitions if answer.topics else {} for answer in answers]
