"""Topics: Kafka topics as users want them."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from typing import Any

from keelman.api.connect.v1 import topic_pb2
from keelman.api.connect.v1 import topic_service_pb2 as pb
from keelman.api.connect.v1 import topic_service_pb2_grpc as grpc
from keelman.kafka.browsing import PeekedRecord, last_records
from keelman.model.cluster import ClusterGoal
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.operation import Operation, OperationKind, OperationTarget
from keelman.model.topic import Topic, TopicGoal, TopicSpec
from keelman.rpc.mapping import message_of, value_of
from keelman.rpc.masks import masked
from keelman.rpc.server import Context
from keelman.rpc.times import to_timestamp
from keelman.state.nouns.operation import with_operation
from keelman.state.nouns.parts import NounParts
from keelman.state.operations.begin import begin, check_no_operation
from keelman.state.resources.annotations import annotated, annotations_of
from keelman.state.resources.checks import check_free, present
from keelman.state.resources.hidden import kept_spec, shown_spec
from keelman.state.resources.noun import Noun
from keelman.state.resources.rows import plain
from keelman.state.resources.serving import NounApi, get, labelled_page, list_page, writing
from keelman.state.resources.snapshot import TOPIC
from keelman.state.resources.transaction import Transaction
from keelman.state.topics.applying import STEPS, facts_of
from keelman.state.topics.broker_views import Seen
from keelman.state.topics.checks import check, check_change, check_no_storage_topic
from keelman.state.topics.differences import differences
from keelman.state.topics.reaching import asked_properties
from keelman.state.topics.states import is_gone, state_of

DEFAULT_PEEK, MAX_PEEK = 5, 1000
DEFAULT_PEEK_SECONDS, MAX_PEEK_SECONDS = 3.0, 60.0


def spec_message(topic_spec: TopicSpec) -> topic_pb2.TopicSpec:
    """Returns the message of a topic's spec, complete."""
    return message_of(topic_pb2.TopicSpec, topic_spec, **annotated(topic_spec.annotations))


def spec_of(message: topic_pb2.TopicSpec, default: str) -> TopicSpec:
    """Returns the spec of a message; `default` is the topic's name in Kafka if the message has none."""
    return value_of(TopicSpec, message, topic=message.topic or default, annotations=annotations_of(message))


def topic_message(topic: Topic, seen: Seen | None = None) -> topic_pb2.Topic:
    """Returns a topic as users and events see it; answers include the brokers' last report."""
    state, message = state_of(topic, seen)
    applied = topic.applied
    status = topic_pb2.TopicStatus(
        state=topic_pb2.TopicState.Value(f"TOPIC_STATE_{state}"),
        message=message,
        applied_generation=applied.generation,
        operation=applied.operation,
    )
    if seen is not None and seen.topic is not None:
        status.brokers.CopyFrom(_on_brokers(seen))
        status.differences.extend(differences(topic.spec, seen.topic))
    return message_of(topic_pb2.Topic, topic, spec=spec_message(shown_spec(topic.spec)), status=status)


def _on_brokers(seen: Seen) -> topic_pb2.TopicOnBrokers:
    assert seen.topic is not None
    assert seen.time is not None

    def broker(node: int) -> topic_pb2.TopicBroker:
        host, port = seen.brokers.get(node, ("", 0))
        return topic_pb2.TopicBroker(node_id=node, host=host, port=port)

    message = topic_pb2.TopicOnBrokers(
        observe_time=to_timestamp(seen.time), topic_id=seen.topic.topic_id, config=seen.topic.own_config
    )
    for partition in seen.topic.partitions:
        part = message.partitions.add(partition=partition.number)
        if partition.leader >= 0:
            part.leader.CopyFrom(broker(partition.leader))
        part.replicas.extend(map(broker, partition.replicas))
        part.in_sync_replicas.extend(map(broker, partition.in_sync))
        if partition.offsets is not None:
            part.begin_offset, part.end_offset = partition.offsets
    return message


NOUN = Noun(Topic, topic_message)


def create(tx: Transaction, name: str, spec: TopicSpec) -> Topic:
    """Stores a new topic, without a call to the brokers."""
    check_free("topic", name, tx.snapshot.topics)
    check(name, spec, tx.snapshot)
    topic = Topic(name, str(uuid.uuid4()), tx.now, tx.now, 1, etag="", goal=TopicGoal.ABSENT, spec=spec)
    return tx.put(topic)


def update(
    tx: Transaction, name: str, etag: str, change: Callable[[TopicSpec], TopicSpec], brokers_have: int = 0
) -> Topic:
    """Changes the topic's spec by `change`. `brokers_have` is its number of partitions on the brokers."""
    topic = present(tx, Topic, name, etag)
    spec = change(topic.spec)
    if spec == topic.spec:
        return topic
    check_change(topic, spec, brokers_have)
    check(name, spec, tx.snapshot)
    is_other = _asked(spec) != _asked(topic.spec)
    return tx.put(dataclasses.replace(topic, spec=spec, generation=topic.generation + is_other))


def delete(tx: Transaction, name: str, etag: str, *, keep_topic: bool, gone: bool = False) -> Topic:
    """Forgets a topic. Raises FailedPrecondition while an operation on it has not ended, and while the brokers have it
    (not known to be `gone`) unless the caller keeps it there."""
    topic = present(tx, Topic, name, etag)
    check_no_operation(tx, TOPIC, name)
    if topic.applied.goal is TopicGoal.PRESENT and not (keep_topic or gone):
        raise FailedPrecondition(
            f"topic {name!r} is on its brokers: apply it as ABSENT first, or keep the topic (keep_topic)",
            reason="PRESENT",
            metadata={"topic": topic.spec.topic, "broker_cluster": topic.spec.broker_cluster},
        )
    tx.drop(TOPIC, name)
    return topic


def apply(tx: Transaction, request: pb.ApplyTopicRequest) -> tuple[Topic, Operation]:
    """Begins an operation that brings the brokers to the topic's spec; returns the topic and the operation."""
    topic = present(tx, Topic, request.name, request.etag)
    check_no_operation(tx, TOPIC, topic.name)
    goal = topic.goal
    if request.goal:
        goal = TopicGoal(topic_pb2.TopicGoal.Name(request.goal).removeprefix("TOPIC_GOAL_"))
    cluster = tx.snapshot.broker_cluster(topic.spec.broker_cluster)
    if cluster.goal is not ClusterGoal.RUNNING:
        asked_properties(cluster)
    check_no_storage_topic(topic.spec, tx.snapshot)
    target = OperationTarget(TOPIC, topic.name, topic.generation, str(goal))
    facts = facts_of(plain(topic.spec), topic.applied)
    operation = begin(tx, OperationKind.APPLY_TOPIC, target, STEPS[goal], facts, origin=topic.spec.annotations.origin)
    applied = dataclasses.replace(topic.applied, operation=operation.name, ended=False, failed=False, problem="")
    return tx.put(dataclasses.replace(topic, goal=goal, applied=applied)), operation


def _asked(spec: TopicSpec) -> tuple[Any, ...]:
    return spec.partitions, spec.replication_factor, dict(spec.config)


class TopicApi(NounApi[NounParts], grpc.TopicServiceServicer):
    """Topics."""

    noun = TOPIC
    GetTopic, ListTopics = get, list_page

    @writing()
    def CreateTopic(self, tx: Transaction, request: pb.CreateTopicRequest) -> Topic:
        """Stores a topic."""
        return create(tx, request.name, kept_spec(spec_of(request.spec, request.name), None))

    @writing()
    def UpdateTopic(self, tx: Transaction, request: pb.UpdateTopicRequest) -> Topic:
        """Changes the spec of a topic."""

        def change(spec: TopicSpec) -> TopicSpec:
            sent = masked(spec_message(spec), request.spec, request.update_mask)
            return kept_spec(spec_of(sent, spec.topic), spec)

        topic = tx.snapshot.topics.get(request.name)
        seen = None if topic is None else self.parts.topics.seen(topic).topic
        return update(tx, request.name, request.etag, change, 0 if seen is None else len(seen.partitions))

    @writing()
    def DeleteTopic(self, tx: Transaction, request: pb.DeleteTopicRequest) -> Topic:
        """Forgets a topic."""
        topic = tx.snapshot.topic(request.name)
        gone = is_gone(topic, self.parts.topics.seen(topic))
        return delete(tx, request.name, request.etag, keep_topic=request.keep_topic, gone=gone)

    @writing()
    def ApplyTopic(self, tx: Transaction, request: pb.ApplyTopicRequest) -> tuple[Topic, Operation]:
        """Begins to bring the brokers to the spec of a topic."""
        return apply(tx, request)

    async def PeekTopic(self, request: pb.PeekTopicRequest, context: Context) -> pb.PeekTopicResponse:
        """Reads its last records."""
        topic = self._snapshot.topic(request.name)
        if not 0 <= request.limit <= MAX_PEEK:
            raise InvalidArgument.of("limit", request.limit, f"0 ({DEFAULT_PEEK}), or 1 to {MAX_PEEK}")
        seconds = request.timeout.ToTimedelta().total_seconds() if request.HasField("timeout") else DEFAULT_PEEK_SECONDS
        if not 0 < seconds <= MAX_PEEK_SECONDS:
            raise InvalidArgument.of("timeout", f"{seconds:g}s", f"more than 0 s, at most {MAX_PEEK_SECONDS:g} s")
        properties = asked_properties(self._snapshot.broker_cluster(topic.spec.broker_cluster))
        count = request.limit or DEFAULT_PEEK
        records = await last_records(properties, topic.spec.topic, count, seconds=seconds)
        return pb.PeekTopicResponse(records=[_peeked(record) for record in reversed(records)])

    def _page(self, request: pb.ListTopicsRequest) -> tuple[list[Topic], str]:
        if not request.broker_cluster:
            return labelled_page(self._snapshot, TOPIC, request)
        self._snapshot.broker_cluster(request.broker_cluster)
        names = [topic.name for topic in self._snapshot.topics_of(request.broker_cluster)]
        return labelled_page(self._snapshot, TOPIC, request, names)

    def _shown(self, topic: Topic, request: Any) -> topic_pb2.Topic:
        return topic_message(topic, self.parts.topics.seen(topic))

    def _fields(self, result: Topic | tuple[Topic, Operation], tx: Transaction) -> dict[str, Any]:
        topic, operation = result if isinstance(result, tuple) else (result, None)
        return with_operation({TOPIC: self._shown(topic, None)}, operation)


def _peeked(record: PeekedRecord) -> topic_pb2.PeekedRecord:
    headers = [topic_pb2.PeekedHeader(key=key, value=value) for key, value in record.headers]
    return message_of(topic_pb2.PeekedRecord, record, headers=headers)


API = TopicApi
