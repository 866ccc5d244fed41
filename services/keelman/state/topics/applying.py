"""Brings brokers to a topic resource's spec: creates, grows, configures, or deletes the topic.

A topic that the brokers have already, and that its resource has not been applied to before, is taken over only if it
needs no change. A topic that an operation created is deleted again when a later step fails.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from keelman.kafka.topic_brokers import DescribedTopics, TopicBrokers
from keelman.model.errors import FailedPrecondition, Unavailable
from keelman.model.operation import Operation, OperationState, StepState
from keelman.model.topic import Topic, TopicApplied, TopicGoal, TopicSpec
from keelman.runtime.supervise import deadline
from keelman.state.database.failpoints import hit
from keelman.state.operations.kinds import OperationProcedure, StepWork
from keelman.state.operations.moves import Done, Outcome, Waiting
from keelman.state.resources.rows import read
from keelman.state.resources.store import ResourceStore
from keelman.state.topics.broker_views import Seen, SeenTopic, seen_of
from keelman.state.topics.differences import config_changes, differences
from keelman.state.topics.reaching import asked_properties

ASK, CREATE, GROW, CONFIGURE, AWAIT = "ask-brokers", "create-topic", "add-partitions", "set-config", "await-topic"
DELETE, AWAIT_GONE = "delete-topic", "await-gone"
STEPS: Mapping[TopicGoal, tuple[str, ...]] = {
    TopicGoal.PRESENT: (ASK, CREATE, GROW, CONFIGURE, AWAIT),
    TopicGoal.ABSENT: (ASK, DELETE, AWAIT_GONE),
}
CALL_SECONDS = 20.0
LOOK_AGAIN_SECONDS = 0.2
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MADE, PERHAPS = "made", "perhaps made"


class TopicNotes(Protocol):
    """Keeps the brokers' reports of topics."""

    def note(self, topic: Topic, seen: Seen) -> None:
        """Stores what an operation has just read."""


def facts_of(spec: Mapping[str, Any], applied: TopicApplied) -> dict[str, Any]:
    """Returns the facts that the steps get: the stored spec, and the topic that it was applied to before."""
    is_known = applied.goal is TopicGoal.PRESENT
    return {"spec": spec, "known": is_known, "known_id": applied.topic_id if is_known else ""}


def procedure(store: ResourceStore, notes: TopicNotes) -> OperationProcedure:
    """Returns the steps of operations on topics."""
    steps = _Steps(store, notes)
    return OperationProcedure(
        {
            ASK: StepWork(steps.ask),
            CREATE: StepWork(steps.create, steps.take_back),
            GROW: StepWork(steps.grow),
            CONFIGURE: StepWork(steps.configure),
            AWAIT: StepWork(steps.await_topic),
            DELETE: StepWork(steps.delete),
            AWAIT_GONE: StepWork(steps.await_gone),
        },
        takes_back=_may_have_made,
        stored=_noted,
    )


def _may_have_made(operation: Operation) -> bool:
    """Returns whether the operation may have created a topic: nothing else can be rolled back."""
    return operation.facts.get("there") is False and any(
        step.name == CREATE and step.start_time is not None and step.state is not StepState.SKIPPED
        for step in operation.steps
    )


def _noted(tx: Any, operation: Operation) -> None:
    """Stores the progress of the operation with its topic."""
    topic = tx.snapshot.topics.get(operation.target.name)
    if topic is None or topic.applied.operation != operation.name:
        return
    before: TopicApplied = topic.applied
    match operation.state:
        case OperationState.SUCCEEDED:
            goal = TopicGoal(operation.target.goal)
            topic_id = operation.facts.get("topic_id", "") if goal is TopicGoal.PRESENT else ""
            after = TopicApplied(operation.name, generation=operation.target.generation, goal=goal, topic_id=topic_id)
        case OperationState.FAILED:
            after = dataclasses.replace(before, ended=True, failed=True, problem=operation.message)
        case OperationState.CANCELED:
            after = dataclasses.replace(before, ended=True, failed=False, problem="")
        case _:
            after = dataclasses.replace(before, problem=operation.message)
    if after != before:
        tx.put(dataclasses.replace(topic, applied=after))


class _Steps:
    """The steps. Each opens its own client: operations are rare, and the brokers may have moved meanwhile."""

    def __init__(self, store: ResourceStore, notes: TopicNotes) -> None:
        self._store = store
        self._notes = notes
        self._since: datetime = store.database.clock()
        self._tried: set[str] = set()

    async def ask(self, operation: Operation) -> Outcome:
        """Finds out whether the brokers have the topic, and whether it can become as requested."""
        spec, facts = _spec(operation), operation.facts
        async with self._brokers(spec) as brokers:
            topic = await _look(brokers, spec)
        if topic is None:
            return Done("the brokers do not have it", {"there": False})
        there = {"there": True, "topic_id": topic.topic_id}
        if operation.target.goal == TopicGoal.ABSENT:
            if not facts["known"]:
                text = "the brokers have a topic of this name, to which the resource was never applied: it stays"
                return Done(text, {"there": False})
            return Done("the brokers have it", there)
        if facts["known"] and facts["known_id"] in ("", topic.topic_id):
            _check_reachable(spec, topic)
            return Done("the brokers have it", there)
        if different := differences(spec, topic):
            raise FailedPrecondition(
                f"topic {spec.topic} exists and differs from the resource: {'; '.join(different)}",
                reason="TOPIC_DIFFERS",
            )
        return Done("the brokers had it already, as specified: taken over", there)

    async def create(self, operation: Operation) -> Outcome:
        """Creates the topic if the brokers did not have it."""
        if operation.facts["there"]:
            return Done(skipped=True)
        spec = _spec(operation)
        mine = self._is_first_try(operation)
        async with self._brokers(spec) as brokers:
            topic_id = await brokers.create(spec.topic, spec.partitions, spec.replication_factor, spec.config)
            hit("topic-created")
            if topic_id is not None:
                return Done(_as_made(spec), {"topic_id": topic_id, "created": MADE})
            topic = await _look(brokers, spec)
        if topic is None:
            return Waiting("the brokers report that it exists, and do not list it yet", LOOK_AGAIN_SECONDS)
        if different := differences(spec, topic):
            raise FailedPrecondition(
                f"topic {spec.topic} was created in the meantime and differs from the resource: {'; '.join(different)}",
                reason="TOPIC_DIFFERS",
            )
        if mine:
            return Done("it was created in the meantime, as specified: taken over", {"topic_id": topic.topic_id})
        return Done(_as_made(spec), {"topic_id": topic.topic_id, "created": PERHAPS})

    async def take_back(self, operation: Operation) -> Outcome:
        """Deletes the topic that the operation created. If it is not certain that the operation did, the topic has to
        be as requested, and empty."""
        spec, facts = _spec(operation), operation.facts
        if operation.step(CREATE).state is StepState.DONE and "created" not in facts:
            return Done("it was created by someone else")
        async with self._brokers(spec) as brokers:
            topic = await _look(brokers, spec, offsets=True)
            if topic is None:
                return Done("the topic is gone" if "created" in facts else "nothing was made")
            if facts.get("created") == MADE:
                if topic.topic_id != facts["topic_id"]:
                    return Done("another topic has its name now: left as it is")
            elif differences(spec, topic) or not _is_empty(topic):
                return Done("a topic with this name exists and may have been created by someone else: not deleted")
            await brokers.delete(spec.topic)
        return Waiting("the brokers delete it", LOOK_AGAIN_SECONDS)

    async def grow(self, operation: Operation) -> Outcome:
        """Adds partitions if the topic has fewer than requested."""
        spec = _spec(operation)
        async with self._brokers(spec) as brokers:
            topic = await _look(brokers, spec)
            if topic is None:
                return _not_listed(operation)
            if len(topic.partitions) >= (spec.partitions or 1):
                return Done(skipped=True)
            await brokers.grow(spec.topic, spec.partitions)
            hit("topic-grown")
        return Done(f"{len(topic.partitions)} to {spec.partitions} partitions")

    async def configure(self, operation: Operation) -> Outcome:
        """Sets the configuration keys that differ from the request, and nothing else."""
        spec = _spec(operation)
        async with self._brokers(spec) as brokers:
            topic = await _look(brokers, spec)
            if topic is None:
                return _not_listed(operation)
            if topic.config is None and not spec.config:
                return Done("the brokers do not show its configuration, and the resource has none", skipped=True)
            if topic.config is None:
                raise FailedPrecondition(
                    f"the brokers do not let keelman see the configuration of topic {spec.topic} (DESCRIBE_CONFIGS)",
                    reason="KEPT_OUT",
                )
            to_set, to_unset = config_changes(spec, topic)
            if not (to_set or to_unset):
                return Done(skipped=True)
            await brokers.configure(spec.topic, to_set, to_unset)
            hit("topic-configured")
        changed = [f"{key}={value}" for key, value in to_set.items()] + [f"{key} as by default" for key in to_unset]
        return Done(", ".join(changed))

    async def await_topic(self, operation: Operation) -> Outcome:
        """Waits until every broker that answers lists the topic as requested, all partitions with a leader."""
        spec = _spec(operation)
        async with self._brokers(spec) as brokers:
            for described in await brokers.described_by_each(spec.topic):
                seen = await self._seen(brokers, described, spec)
                if seen.topic is None:
                    return _not_listed(operation)
                if different := differences(spec, seen.topic):
                    return Waiting(f"a broker does not know of it yet: {'; '.join(different)}", LOOK_AGAIN_SECONDS)
                if any(partition.leader < 0 for partition in seen.topic.partitions):
                    return Waiting("partitions have no leader yet", LOOK_AGAIN_SECONDS)
        assert seen.topic is not None
        self._note(operation, seen)
        return Done(facts={"topic_id": seen.topic.topic_id})

    async def delete(self, operation: Operation) -> Outcome:
        """Deletes the topic with its records."""
        if not operation.facts["there"]:
            return Done(skipped=True)
        spec = _spec(operation)
        async with self._brokers(spec) as brokers:
            await brokers.delete(spec.topic)
            hit("topic-deleted")
        return Done()

    async def await_gone(self, operation: Operation) -> Outcome:
        """Waits until no broker that answers lists the topic."""
        if not operation.facts["there"]:
            return Done(skipped=True)
        spec = _spec(operation)
        async with self._brokers(spec) as brokers:
            for described in await brokers.described_by_each(spec.topic):
                if (topic := described.topics.get(spec.topic)) is not None:
                    if operation.facts["topic_id"] in ("", topic.id):
                        return Waiting("the brokers delete it", LOOK_AGAIN_SECONDS)
                    return Done("deleted; another topic was created in the meantime")
        self._note(operation, Seen(self._store.database.clock(), ""))
        return Done()

    def _is_first_try(self, operation: Operation) -> bool:
        """Returns whether no one can have tried the step before: this process began it, and tries it for the first
        time."""
        start = operation.step(CREATE).start_time
        first = operation.name not in self._tried and start is not None and start >= self._since
        self._tried.add(operation.name)
        return first

    async def _seen(self, brokers: TopicBrokers, described: DescribedTopics, spec: TopicSpec) -> Seen:
        offsets = await brokers.offsets(described.topics)
        configs = await brokers.configs([spec.topic]) if described.topics else {}
        return seen_of(described, spec.topic, offsets, configs.get(spec.topic), self._store.database.clock())

    def _note(self, operation: Operation, seen: Seen) -> None:
        topic = self._store.snapshot.topics.get(operation.target.name)
        if topic is not None:
            self._notes.note(topic, seen)

    @contextlib.asynccontextmanager
    async def _brokers(self, spec: TopicSpec) -> AsyncIterator[TopicBrokers]:
        """Opens a client of the brokers. Raises NotFound, FailedPrecondition or Unavailable if it cannot."""
        properties = asked_properties(self._store.snapshot.broker_cluster(spec.broker_cluster))
        late = Unavailable(f"the brokers of {spec.broker_cluster!r} did not answer in {CALL_SECONDS:g} s")
        async with deadline(CALL_SECONDS, late), TopicBrokers.open(properties) as brokers:
            yield brokers


def _spec(operation: Operation) -> TopicSpec:
    return read(TopicSpec, operation.facts["spec"])


async def _look(brokers: TopicBrokers, spec: TopicSpec, *, offsets: bool = False) -> SeenTopic | None:
    """Returns the topic as the brokers have it, with its configuration as far as they show it; None if they do not have
    it."""
    described = await brokers.describe([spec.topic])
    if not described.topics:
        return None
    configs = await brokers.configs([spec.topic])
    ends = await brokers.offsets(described.topics) if offsets else {}
    return seen_of(described, spec.topic, ends, configs.get(spec.topic), EPOCH).topic


def _check_reachable(spec: TopicSpec, topic: SeenTopic) -> None:
    """Raises FailedPrecondition where the topic can never become as requested."""
    have = len(topic.partitions)
    if 0 < spec.partitions < have:
        raise FailedPrecondition(
            f"topic {spec.topic} has {have} partitions, specified are {spec.partitions}: partitions only grow",
            reason="TOPIC_DIFFERS",
        )
    if spec.replication_factor and spec.replication_factor != topic.replicas:
        raise FailedPrecondition(
            f"topic {spec.topic} has {topic.replicas} replicas of each partition, specified are "
            f"{spec.replication_factor}: the number cannot change on an existing topic",
            reason="TOPIC_DIFFERS",
        )


def _not_listed(operation: Operation) -> Outcome:
    """Returns the outcome of a step that finds no topic: after its creation, brokers may not list it yet."""
    if operation.facts["there"]:
        raise FailedPrecondition("the topic was deleted in the meantime: apply it again", reason="TOPIC_GONE")
    return Waiting("not every broker lists it yet", LOOK_AGAIN_SECONDS)


def _is_empty(topic: SeenTopic) -> bool:
    return all(
        partition.offsets is not None and partition.offsets[0] == partition.offsets[1] == 0
        for partition in topic.partitions
    )


def _as_made(spec: TopicSpec) -> str:
    partitions = f"{spec.partitions} partitions" if spec.partitions else "partitions as by default"
    replicas = f"{spec.replication_factor} replicas" if spec.replication_factor else "replicas as by default"
    return f"{partitions}, {replicas}"
