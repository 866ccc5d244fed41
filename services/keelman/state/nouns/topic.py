"""Topics: Kafka topics as users want them."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlmodel import Field, SQLModel

from keelman.api.connect.v1 import topic_pb2
from keelman.api.connect.v1 import topic_service_pb2 as pb
from keelman.api.connect.v1 import topic_service_pb2_grpc as grpc
from keelman.kafka.browsing import PeekedRecord, last_records
from keelman.model.cluster import ClusterGoal
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.operation import Operation, OperationKind, Target
from keelman.model.topic import Topic, TopicApplied, TopicGoal, TopicSpec
from keelman.rpc.masks import masked
from keelman.rpc.pages import key_of, page_limit, token_for
from keelman.rpc.server import Context, Service
from keelman.rpc.times import to_timestamp
from keelman.state.nouns.checks import check_etag, check_free
from keelman.state.nouns.clusters import annotate, annotations_of
from keelman.state.nouns.hidden import kept_spec, shown_spec
from keelman.state.nouns.noun import Noun, Parts, service
from keelman.state.nouns.operation import begin, check_no_operation, operation_message
from keelman.state.nouns.rows import big_column, json_column, micros, moment, plain, plain_spec, read, read_spec
from keelman.state.nouns.serving import has_labels, labelled_page, written
from keelman.state.operations.topic_steps import STEPS, facts_of
from keelman.state.snapshot import TOPIC, Snapshot
from keelman.state.topics.checks import check, check_change, check_no_storage_topic
from keelman.state.topics.differences import differences
from keelman.state.topics.reaching import asked_properties
from keelman.state.topics.seen import Seen
from keelman.state.topics.states import is_gone, state_of

if TYPE_CHECKING:
    from keelman.state.store import Transaction

MAX_DESCRIPTION = 4096
DEFAULT_PEEK, MAX_PEEK = 5, 1000
DEFAULT_PEEK_SECONDS, MAX_PEEK_SECONDS = 3.0, 60.0


class TopicRow(SQLModel, table=True):
    """A topic; `spec` and `applied` are JSON."""

    __tablename__ = "topic"
    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_column=big_column())
    update_time: int = Field(sa_column=big_column())
    generation: int = Field(sa_column=big_column())
    revision: int = Field(sa_column=big_column())
    goal: str
    spec: dict[str, Any] = Field(sa_column=json_column())
    applied: dict[str, Any] = Field(sa_column=json_column())


def to_row(topic: Topic) -> dict[str, Any]:
    """The values of its row."""
    return {
        "name": topic.name, "uid": topic.uid, "create_time": micros(topic.create_time),
        "update_time": micros(topic.update_time), "generation": topic.generation, "revision": int(topic.etag or 0),
        "goal": str(topic.goal), "spec": plain_spec(topic.spec), "applied": plain(topic.applied),
    }  # fmt: skip


def from_row(row: TopicRow) -> Topic:
    """The topic of a row."""
    return Topic(
        name=row.name, uid=row.uid, create_time=moment(row.create_time), update_time=moment(row.update_time),
        generation=row.generation, etag=str(row.revision), goal=TopicGoal(row.goal),
        spec=read_spec(TopicSpec, row.spec), applied=read(TopicApplied, row.applied),
    )  # fmt: skip


def spec_message(wanted: TopicSpec) -> topic_pb2.TopicSpec:
    """What a user wants of a topic, on the wire, complete."""
    spec = topic_pb2.TopicSpec(
        broker_cluster=wanted.broker_cluster,
        topic=wanted.topic,
        partitions=wanted.partitions,
        replication_factor=wanted.replication_factor,
        config=dict(wanted.config),
    )
    annotate(spec, wanted.annotations)
    return spec


def spec_of(message: topic_pb2.TopicSpec, default: str) -> TopicSpec:
    """What a user wants of a topic; its name in Kafka is the default where none is given."""
    return TopicSpec(
        broker_cluster=message.broker_cluster,
        topic=message.topic or default,
        partitions=message.partitions,
        replication_factor=message.replication_factor,
        config=dict(message.config),
        annotations=annotations_of(message),
    )


def topic_message(topic: Topic, seen: Seen | None = None) -> topic_pb2.Topic:
    """A topic as users and events see it; answers have what the brokers said last."""
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
    return topic_pb2.Topic(
        name=topic.name,
        uid=topic.uid,
        create_time=to_timestamp(topic.create_time),
        update_time=to_timestamp(topic.update_time),
        generation=topic.generation,
        etag=topic.etag,
        spec=spec_message(shown_spec(topic.spec)),
        goal=topic_pb2.TopicGoal.Value(f"TOPIC_GOAL_{topic.goal}"),
        status=status,
    )


def _on_brokers(seen: Seen) -> topic_pb2.TopicOnBrokers:
    assert seen.topic is not None
    assert seen.time is not None

    def broker(node: int) -> topic_pb2.TopicBroker:
        host, port = seen.brokers.get(node, ("", 0))
        return topic_pb2.TopicBroker(node_id=node, host=host, port=port)

    found = topic_pb2.TopicOnBrokers(
        observe_time=to_timestamp(seen.time), topic_id=seen.topic.topic_id, config=seen.topic.own_config
    )
    for one in seen.topic.partitions:
        part = found.partitions.add(partition=one.number)
        if one.leader >= 0:
            part.leader.CopyFrom(broker(one.leader))
        part.replicas.extend(map(broker, one.replicas))
        part.in_sync_replicas.extend(map(broker, one.in_sync))
        if one.offsets is not None:
            part.begin_offset, part.end_offset = one.offsets
    return found


NOUN = Noun(Topic, TopicRow, to_row, from_row, topic_message)


def create(tx: Transaction, name: str, spec: TopicSpec) -> Topic:
    """A new topic; the brokers are not asked."""
    check_free("topic", name, tx.snapshot.topics)
    _check_description(spec)
    check(name, spec, tx.snapshot)
    made = Topic(name, str(uuid.uuid4()), tx.now, tx.now, 1, etag="", goal=TopicGoal.ABSENT, spec=spec)
    return tx.put(made)


def update(
    tx: Transaction, name: str, etag: str, change: Callable[[TopicSpec], TopicSpec], brokers_have: int = 0
) -> Topic:
    """The topic with the spec that `change` makes of its present one. The brokers have it with so many partitions."""
    topic = _found(tx, name, etag)
    spec = change(topic.spec)
    if spec == topic.spec:
        return topic
    check_change(topic, spec, brokers_have)
    _check_description(spec)
    check(name, spec, tx.snapshot)
    asked = _asked(spec) != _asked(topic.spec)
    return tx.put(dataclasses.replace(topic, spec=spec, generation=topic.generation + asked))


def delete(tx: Transaction, name: str, etag: str, *, keep_topic: bool, gone: bool = False) -> Topic:
    """Forgets a topic. Raises FailedPrecondition while an operation on it has not ended, and while the brokers have it
    (are not known to have lost it: `gone`) unless it is to stay there."""
    topic = _found(tx, name, etag)
    check_no_operation(tx, TOPIC, name)
    if topic.applied.goal is TopicGoal.PRESENT and not (keep_topic or gone):
        raise FailedPrecondition(
            f"topic {name!r} is on its brokers: apply it as ABSENT first, or say that it is to stay there (keep_topic)",
            reason="PRESENT",
            metadata={"topic": topic.spec.topic, "broker_cluster": topic.spec.broker_cluster},
        )
    tx.drop(TOPIC, name)
    return topic


def apply(tx: Transaction, request: pb.ApplyTopicRequest) -> tuple[Topic, Operation]:
    """The topic with an operation that brings its brokers to what it says."""
    topic = _found(tx, request.name, request.etag)
    check_no_operation(tx, TOPIC, topic.name)
    goal = topic.goal
    if request.goal:
        goal = TopicGoal(topic_pb2.TopicGoal.Name(request.goal).removeprefix("TOPIC_GOAL_"))
    cluster = tx.snapshot.broker_cluster(topic.spec.broker_cluster)
    if cluster.goal is not ClusterGoal.RUNNING:
        asked_properties(cluster)
    check_no_storage_topic(topic.spec, tx.snapshot)
    target = Target(TOPIC, topic.name, topic.generation, str(goal))
    facts = facts_of(plain_spec(topic.spec), topic.applied)
    operation = begin(tx, OperationKind.APPLY_TOPIC, target, STEPS[goal], facts, origin=topic.spec.annotations.origin)
    applied = dataclasses.replace(topic.applied, operation=operation.name, ended=False, failed=False, problem="")
    return tx.put(dataclasses.replace(topic, goal=goal, applied=applied)), operation


def _found(tx: Transaction, name: str, etag: str) -> Topic:
    topic = tx.snapshot.topic(name)
    check_etag(name, etag, topic.etag)
    return topic


def _asked(spec: TopicSpec) -> tuple[Any, ...]:
    return spec.partitions, spec.replication_factor, dict(spec.config)


def _check_description(spec: TopicSpec) -> None:
    text = spec.annotations.description
    if len(text) > MAX_DESCRIPTION:
        raise InvalidArgument.of("spec.description", f"{text[:20]}...", f"at most {MAX_DESCRIPTION} characters")


@dataclass(frozen=True, slots=True)
class TopicApi(grpc.TopicServiceServicer):
    """Topics."""

    parts: Parts

    async def GetTopic(self, request: pb.GetTopicRequest, context: Context) -> pb.GetTopicResponse:
        """One topic."""
        return pb.GetTopicResponse(topic=self._shown(self._snapshot.topic(request.name)))

    async def ListTopics(self, request: pb.ListTopicsRequest, context: Context) -> pb.ListTopicsResponse:
        """A page of topics."""
        if not request.broker_cluster:
            part, token = labelled_page(self._snapshot, TOPIC, request, lambda t: t.spec.annotations.labels)
            return pb.ListTopicsResponse(topics=map(self._shown, part), next_page_token=token)
        self._snapshot.broker_cluster(request.broker_cluster)
        limit, after = page_limit(request.page_size), key_of(request.page_token)
        wanted = [
            topic
            for topic in self._snapshot.topics_of(request.broker_cluster)
            if topic.name > after and has_labels(topic.spec.annotations.labels, request.labels.items())
        ]
        token = token_for(wanted[limit - 1].name) if len(wanted) > limit else ""
        return pb.ListTopicsResponse(topics=map(self._shown, wanted[:limit]), next_page_token=token)

    async def CreateTopic(self, request: pb.CreateTopicRequest, context: Context) -> pb.CreateTopicResponse:
        """Stores a topic."""

        def work(tx: Transaction) -> dict[str, Any]:
            spec = kept_spec(spec_of(request.spec, request.name), None)
            return self._fields(create(tx, request.name, spec))

        return await written(self.parts.store, request, pb.CreateTopicResponse, work)

    async def UpdateTopic(self, request: pb.UpdateTopicRequest, context: Context) -> pb.UpdateTopicResponse:
        """Changes the spec of a topic."""

        def change(spec: TopicSpec) -> TopicSpec:
            sent = masked(spec_message(spec), request.spec, request.update_mask)
            return kept_spec(spec_of(sent, spec.topic), spec)

        def work(tx: Transaction) -> dict[str, Any]:
            topic = tx.snapshot.topics.get(request.name)
            seen = None if topic is None else self.parts.topics.seen(topic).topic
            have = 0 if seen is None else len(seen.partitions)
            return self._fields(update(tx, request.name, request.etag, change, have))

        return await written(self.parts.store, request, pb.UpdateTopicResponse, work)

    async def ApplyTopic(self, request: pb.ApplyTopicRequest, context: Context) -> pb.ApplyTopicResponse:
        """Begins an operation on a topic."""

        def work(tx: Transaction) -> dict[str, Any]:
            topic, operation = apply(tx, request)
            return self._fields(topic) | {"operation": operation_message(operation)}

        return await written(self.parts.store, request, pb.ApplyTopicResponse, work)

    async def DeleteTopic(self, request: pb.DeleteTopicRequest, context: Context) -> pb.DeleteTopicResponse:
        """Forgets a topic."""

        def work(tx: Transaction) -> dict[str, Any]:
            topic = tx.snapshot.topic(request.name)
            gone = is_gone(topic, self.parts.topics.seen(topic))
            return self._fields(delete(tx, request.name, request.etag, keep_topic=request.keep_topic, gone=gone))

        return await written(self.parts.store, request, pb.DeleteTopicResponse, work)

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
        found = await last_records(properties, topic.spec.topic, count, seconds=seconds)
        return pb.PeekTopicResponse(records=[_peeked(one) for one in reversed(found)])

    @property
    def _snapshot(self) -> Snapshot:
        return self.parts.store.snapshot

    def _shown(self, topic: Topic) -> topic_pb2.Topic:
        return topic_message(topic, self.parts.topics.seen(topic))

    def _fields(self, topic: Topic) -> dict[str, Any]:
        return {"topic": topic_message(topic, self.parts.topics.seen(topic))}


def _peeked(record: PeekedRecord) -> topic_pb2.PeekedRecord:
    return topic_pb2.PeekedRecord(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
        headers=[topic_pb2.PeekedHeader(key=key, value=value) for key, value in record.headers],
    )


def services(parts: Parts) -> list[Service]:
    """The gRPC services of topics."""
    return [service("connect", "TopicService", grpc.add_TopicServiceServicer_to_server, TopicApi(parts))]
