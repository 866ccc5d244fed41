"""The state service is killed between an operation's request to brokers and the record of its result.

A cancelled operation deletes a topic that it created, and never a topic that someone else created.
"""

import contextlib
import dataclasses
import signal
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer

from keelman.api.connect.v1 import operation_pb2, topic_pb2
from keelman.kafka.data_topics import create_topic
from keelman.kafka.topic_brokers import TopicBrokers
from keelman.model.cluster import BrokerCluster, ClusterGoal, ExternalBrokers
from keelman.model.errors import KeelmanError
from keelman.model.operation import Operation, OperationKind, OperationTarget, Step, StepState
from keelman.model.topic import NOT_APPLIED, TopicGoal, TopicSpec
from keelman.rpc.channels import channel
from keelman.state.database.failpoints import ON_BROKERS
from keelman.state.operations.moves import Done, Waiting
from keelman.state.resources.rows import plain
from keelman.state.topics.applying import CREATE, STEPS, facts_of, procedure
from support.eventually import eventually
from support.state.service import Clients, StateProcess
from support.state.stores import open_store
from support.state.topics import ABSENT, PRESENT, Topics, states

pytestmark = pytest.mark.component
CHANGES = {
    "topic-created": {},
    "topic-grown": {"partitions": 4},
    "topic-configured": {"config": {"retention.ms": "70000"}},
    "topic-deleted": {},
}


@contextlib.asynccontextmanager
async def topics_of(state: StateProcess):
    async with channel(f"127.0.0.1:{state.port}") as connection:
        yield Topics(Clients(connection), "ext")


async def test_an_operation_goes_on_after_a_kill(tmp_path, bootstrap: str, name: str):
    file, state = tmp_path / "armed", StateProcess(tmp_path / "home")
    file.write_text("0")
    await state.start()
    try:
        async with topics_of(state) as topics:
            await topics.clients.create_external("ext", bootstrap)
            await topics.create(name, partitions=2, config={"retention.ms": "60000"})
        topic_id = ""
        for point in ON_BROKERS:
            await state.end()
            state.environment = {"KEELMAN_FAILPOINT": point, "KEELMAN_FAILPOINT_FILE": str(file)}
            await state.start()
            async with topics_of(state) as topics:
                if CHANGES[point]:
                    await topics.update(name, **CHANGES[point])
                operation = ""
                with contextlib.suppress(KeelmanError):
                    operation = await topics.begin(name, ABSENT if point == "topic-deleted" else PRESENT)
                assert await state.child.wait() == -signal.SIGKILL, state.output
            state.environment = {}
            await state.start()
            async with topics_of(state) as topics:
                ended = await topics.ended(operation or (await topics.get(name)).status.operation)
                assert ended.state == operation_pb2.OPERATION_STATE_SUCCEEDED, (point, ended)
                topic = await topics.get(name)
            brokers = topic.status.brokers
            if point != "topic-deleted":
                assert topic.status.state == topic_pb2.TOPIC_STATE_PRESENT, point
                assert (list(topic.status.differences), brokers.topic_id) == ([], topic_id or brokers.topic_id)
                topic_id = brokers.topic_id
        assert topic.status.state == topic_pb2.TOPIC_STATE_ABSENT
        assert states(ended)["delete-topic"] == "DONE"
    finally:
        await state.end(signal.SIGKILL)


def operation_on(spec: TopicSpec, begun: datetime, **facts) -> Operation:
    """An operation that creates a topic, which did not exist on the brokers."""
    steps = [Step(step) for step in STEPS[TopicGoal.PRESENT]]
    steps[1] = dataclasses.replace(steps[1], state=StepState.RUNNING, start_time=begun)
    return Operation(
        "op", "uid", begun, begun, OperationKind.APPLY_TOPIC, OperationTarget("topic", "t", 1, "PRESENT"), tuple(steps),
        facts={**facts_of(plain(spec), NOT_APPLIED), "there": False, **facts},
    )  # fmt: skip


@pytest.fixture
async def create(tmp_path, bootstrap: str):
    """The step that creates a topic, of a state service that started this year."""
    async with open_store(str(tmp_path / "state.db")) as store:
        now = datetime.now(UTC)
        async with store.write() as tx:
            tx.put(BrokerCluster("ext", "u", now, now, 1, "", ClusterGoal.RUNNING, ExternalBrokers(bootstrap)))
        yield procedure(store, None).steps[CREATE]  # type: ignore[arg-type]


async def test_what_an_operation_made_is_taken_back(create, bootstrap: str, name: str):
    spec = TopicSpec("ext", name, partitions=2)
    operation = operation_on(spec, datetime.now(UTC))
    done = await create.do(operation)
    assert isinstance(done, Done), done
    operation = dataclasses.replace(operation, facts={**operation.facts, **done.facts})
    await undone(create, operation, "the topic is gone")
    async with TopicBrokers.open({"bootstrap.servers": bootstrap}) as brokers:
        assert not (await brokers.describe([name])).topics


async def undone(create, operation: Operation, message: str) -> None:
    async def is_done() -> bool:
        outcome = await create.undo(operation)
        if isinstance(outcome, Waiting):
            return False
        assert outcome.message == message
        return True

    await eventually(is_done)


async def test_what_only_may_have_been_made_goes_while_it_is_empty(create, bootstrap: str, name: str):
    properties, long_ago = {"bootstrap.servers": bootstrap}, datetime(2020, 1, 1, tzinfo=UTC)
    spec = TopicSpec("ext", name, partitions=1)
    await create_topic(properties, name, partitions=1)
    mine = operation_on(spec, datetime.now(UTC))
    done = await eventually(lambda: create.do(mine))
    assert "created" not in done.facts, "a step that this process has begun and not tried before made nothing"
    done = await create.do(operation_on(spec, long_ago))
    assert done.facts["created"] == "perhaps made"
    producer = Producer(properties)
    producer.produce(name, b"somebody's")
    assert not producer.flush(300)
    operation = operation_on(spec, long_ago, **done.facts)
    left = "a topic with this name exists and may have been created by someone else: not deleted"
    await undone(create, operation, left)
    await undone(create, operation_on(dataclasses.replace(spec, partitions=2), long_ago), left)
