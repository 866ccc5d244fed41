"""`/v0/topics`: topics of the state service, created in Kafka when they are started."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from keelman.api.connect.v1 import topic_service_pb2 as pb
from keelman.api.connect.v1.broker_cluster_pb2 import CLUSTER_STATE_DEGRADED, CLUSTER_STATE_RUNNING, BrokerCluster
from keelman.api.connect.v1.topic_pb2 import TOPIC_GOAL_ABSENT, TOPIC_GOAL_PRESENT, Topic, TopicGoal
from keelman.gateway.ohara.definitions import shabondi, stream
from keelman.gateway.ohara.definitions.config import TOPIC_KEYS
from keelman.gateway.ohara.definitions.topic import BROKER_CLUSTER_KEY, TOPIC
from keelman.gateway.ohara.kinds import Kinds
from keelman.gateway.ohara.state import lookups
from keelman.gateway.ohara.state.changing import settled, undisturbed
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.structs import as_sent
from keelman.gateway.ohara.topics.settings import settings_of, spec_of
from keelman.gateway.ohara.topics.state import is_changing, is_to_run, life, runs
from keelman.gateway.ohara.wire.call import OharaCall
from keelman.gateway.ohara.wire.errors import illegal_argument, unsupported
from keelman.gateway.ohara.wire.keys import ObjectKey, checked_key, key_of, own_name, shown_key
from keelman.gateway.ohara.wire.resource import Json, OharaResource
from keelman.gateway.ohara.wire.values import Settings, created, edited
from keelman.gateway.ohara.wire.wording import exists, must_be_stopped, must_run, not_found, not_stored
from keelman.model.errors import AlreadyExists, NotFound

KIND = "topic"
USERS = {
    "connector": (TOPIC_KEYS,),
    "stream": (stream.FROM, stream.TO),
    "shabondi": (shabondi.TO_TOPICS, shabondi.FROM_TOPICS),
}
"""Kinds that use topics, and their settings with the names of topics."""


class OharaTopics(OharaResource):
    """Topics."""

    def __init__(self, control: OharaControl, kinds: Kinds) -> None:
        self._control = control
        self._kinds = kinds

    async def list(self) -> Sequence[Json]:
        """Returns all topics."""
        control = self._control
        topics, brokers = await asyncio.gather(control.shared(_read_topics), lookups.broker_clusters(control))
        return [
            _json(key, value, brokers.get(value.spec.broker_cluster)) for key, value in lookups.shown(topics).items()
        ]

    async def get(self, key: ObjectKey) -> Json:
        """Returns one topic. Raises no_such."""
        return await self._answer(key, await self._topic(key))

    async def create(self, settings: Settings) -> Json:
        """Creates a topic, which Kafka does not have yet."""
        checked = created(TOPIC, settings)
        key = checked_key(checked["group"], checked["name"])
        cluster = await self._broker(checked)
        request = pb.CreateTopicRequest(name=own_name(key), spec=spec_of(key, checked, cluster.name))
        if await lookups.topic(self._control, key) is not None:
            raise exists(KIND, key)
        try:
            topic = (await self._control.ask(request)).topic
        except AlreadyExists:
            raise exists(KIND, key) from None
        return _json(key, as_sent(topic, request.spec), cluster)

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        """Changes or creates a topic. Raises OharaError while Kafka has it."""
        if await lookups.topic(self._control, key) is None:
            return await self.create({**settings, **key.json})
        topic = await settled(partial(self._topic, key), is_changing)
        if runs(topic):
            raise must_be_stopped(KIND, key)
        former = await lookups.broker_cluster_named(self._control, topic.spec.broker_cluster)
        previous = settings_of(key, topic, _shown(former))
        checked = edited(TOPIC, previous, {**settings, **key.json}) | key.json
        cluster = await self._broker(checked)
        spec = spec_of(key, checked, cluster.name)
        spec.topic = topic.spec.topic
        if cluster.name != topic.spec.broker_cluster:  # not in Kafka: another topic takes its place
            await self._forget(topic)
            topic = (await self._control.ask(pb.CreateTopicRequest(name=topic.name, spec=spec))).topic
            return _json(key, as_sent(topic, spec), cluster)
        spec.origin.CopyFrom(topic.spec.origin)
        if not topic.spec.HasField("origin"):
            spec.ClearField("origin")
        topic = (await self._control.ask(pb.UpdateTopicRequest(name=topic.name, spec=spec))).topic
        return _json(key, as_sent(topic, spec), cluster)

    async def delete(self, key: ObjectKey) -> None:
        """Deletes a topic. Raises OharaError while Kafka has it, or a stored object names it."""
        if await lookups.topic(self._control, key) is None:
            return
        read, name = partial(self._topic, key), f"topic {key}"
        topic = await undisturbed(self._control, read, is_changing, lambda resource: resource.status.operation, name)
        if runs(topic):
            raise must_be_stopped(KIND, key)
        await self._check_users(key, running=False)
        await self._forget(topic)

    async def act(self, key: ObjectKey, verb: str, call: OharaCall) -> None:
        """Starts or stops a topic: creates it in Kafka, or deletes it there."""
        if verb not in ("start", "stop"):
            raise unsupported(call.target)
        topic = await self._topic(key)
        if verb == "start":
            await self._start(key, topic)
        elif runs(topic) or is_changing(topic):
            await self._check_users(key, running=True)
            await self._apply(key, topic, TOPIC_GOAL_ABSENT)

    async def _start(self, key: ObjectKey, topic: Topic) -> None:
        cluster = await lookups.broker_cluster_named(self._control, topic.spec.broker_cluster)
        if cluster is None or cluster.status.state not in (CLUSTER_STATE_RUNNING, CLUSTER_STATE_DEGRADED):
            shown = _shown(cluster)
            raise must_run("broker", [shown or ObjectKey("default", topic.spec.broker_cluster)])
        if not runs(topic) or not is_to_run(topic):
            await self._apply(key, topic, TOPIC_GOAL_PRESENT)

    async def _apply(self, key: ObjectKey, topic: Topic, goal: TopicGoal.ValueType) -> None:
        if is_changing(topic) and topic.goal == goal:
            return
        read, name = partial(self._topic, key), f"topic {key}"
        topic = await undisturbed(self._control, read, is_changing, lambda resource: resource.status.operation, name)
        await self._control.ask(pb.ApplyTopicRequest(name=topic.name, goal=goal))

    async def _topic(self, key: ObjectKey) -> Topic:
        if (topic := await lookups.topic(self._control, key)) is None:
            raise not_found(KIND, key)
        return topic

    async def _answer(self, key: ObjectKey, topic: Topic) -> Json:
        return _json(key, topic, await lookups.broker_cluster_named(self._control, topic.spec.broker_cluster))

    async def _broker(self, settings: Settings) -> BrokerCluster:
        key = key_of(settings[BROKER_CLUSTER_KEY], BROKER_CLUSTER_KEY)
        if (cluster := await lookups.broker_cluster(self._control, key)) is None:
            raise not_stored("broker", [key])
        return cluster

    async def _forget(self, topic: Topic) -> None:
        with suppress(NotFound):
            await self._control.ask(pb.DeleteTopicRequest(name=topic.name, keep_topic=True))

    async def _check_users(self, key: ObjectKey, *, running: bool) -> None:
        for kind, fields in USERS.items():
            users = [
                key_of(document)
                for document in await self._kinds.all(kind)
                if ("state" in document or not running)
                and key in [key_of(each, field) for field in fields for each in document.get(field, [])]
            ]
            if users:
                named = ",".join(map(str, users))
                raise illegal_argument(f"topic:{key} is used by running {kind}s:{named}")


async def _read_topics(control: OharaControl) -> Sequence[Topic]:
    return await control.all(pb.ListTopicsRequest)


def _json(key: ObjectKey, topic: Topic, broker: BrokerCluster | None) -> Json:
    return settings_of(key, topic, _shown(broker) or ObjectKey("default", topic.spec.broker_cluster)) | life(topic)


def _shown(broker: BrokerCluster | None) -> ObjectKey | None:
    return None if broker is None else shown_key(broker.name, broker.spec.origin)
