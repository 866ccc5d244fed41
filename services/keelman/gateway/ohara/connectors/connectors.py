"""`/v0/connectors`: connector definitions of the state service, whose operations apply them to worker clusters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from keelman.api.connect.v1 import connector_definition_pb2 as goals
from keelman.api.connect.v1 import connector_definition_service_pb2 as pb
from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinition, DefinitionGoal
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster
from keelman.gateway.ohara.connectors.columns import check_columns
from keelman.gateway.ohara.connectors.life import answers, is_there, is_wanted, life
from keelman.gateway.ohara.connectors.specs import ConnectorSettings, answer_of, filled_of, settings_of, spec_of
from keelman.gateway.ohara.connectors.worker_classes import WorkerClasses
from keelman.gateway.ohara.definitions.config import CLASS, COLUMNS, INTERNAL, TOPIC_KEYS, WORKER_KEY
from keelman.gateway.ohara.definitions.connector import CHECK_RULE, CHECK_RULES, CONNECTOR
from keelman.gateway.ohara.state import lookups
from keelman.gateway.ohara.state.changing import settled, undisturbed
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.topics.state import is_changing as is_topic_changing
from keelman.gateway.ohara.topics.state import runs
from keelman.gateway.ohara.wire.call import OharaCall
from keelman.gateway.ohara.wire.errors import bad_value, illegal_argument, unsupported
from keelman.gateway.ohara.wire.keys import ObjectKey, checked_key, key_of, own_name, shown_key
from keelman.gateway.ohara.wire.resource import Json, OharaResource
from keelman.gateway.ohara.wire.values import Settings, created, edited
from keelman.gateway.ohara.wire.wording import checked_running, exists, must_be_stopped, must_run, not_found, not_stored
from keelman.model.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound

KIND = "connector"
SENT = tuple(setting for setting in CONNECTOR if not setting.internal)
"""The settings that a request may have."""
CLASS_SECONDS = 2.0
"""The limit for a worker cluster's answer about a class: after it a connector is stored without the answer."""
RUNNING, PAUSED = goals.DEFINITION_GOAL_RUNNING, goals.DEFINITION_GOAL_PAUSED
ABSENT = goals.DEFINITION_GOAL_ABSENT


class OharaConnectors(OharaResource):
    """Connectors."""

    def __init__(self, control: OharaControl, classes: WorkerClasses) -> None:
        self._control = control
        self._classes = classes

    async def list(self) -> Sequence[Json]:
        """Returns all connectors, as their workers reported them."""
        control = self._control
        definitions = await control.shared(_read_definitions)
        clusters, nodes = await asyncio.gather(lookups.worker_clusters(control), lookups.hostnames(control))
        return [
            _json(key, value, clusters.get(value.spec.worker_cluster), nodes)
            for key, value in lookups.shown(definitions).items()
        ]

    async def get(self, key: ObjectKey) -> Json:
        """Returns one connector. Raises no_such."""
        definition = await self._definition(key)
        cluster = await self._cluster_of(definition)
        nodes = await lookups.hostnames(self._control) if definition.status.HasField("connector") else {}
        return _json(key, definition, cluster, nodes)

    async def create(self, settings: Settings) -> Json:
        """Creates a connector, which no worker has yet."""
        checked = checked_settings(created(SENT, without_internal(settings)))
        key = checked_key(checked["group"], checked["name"])
        if await lookups.definition(self._control, key) is not None:
            raise exists(KIND, key)
        cluster, connector_settings = await self._wanted(checked)
        spec = spec_of(key, connector_settings, cluster.name)
        request = pb.CreateConnectorDefinitionRequest(name=own_name(key), spec=spec)
        try:
            await self._control.ask(request)
        except AlreadyExists:
            raise exists(KIND, key) from None
        except (InvalidArgument, FailedPrecondition):
            worker = key_of(checked[WORKER_KEY], WORKER_KEY)
            if await lookups.worker_cluster(self._control, worker) is None:  # deleted since it was read
                raise not_stored("worker", [worker]) from None
            raise
        return await self.get(key)  # as it was sent: the answer to a write has hidden secrets

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        """Changes or creates a connector. Raises OharaError while its worker cluster has it."""
        if await lookups.definition(self._control, key) is None:
            return await self.create({**settings, **key.json})
        definition = await settled(partial(self._definition, key), _is_changing)
        former = await self._cluster_of(definition)
        if is_there(definition) and is_wanted(former):
            raise must_be_stopped(KIND, key)
        previous = settings_of(key, definition, _worker_key(definition, former))
        filled = filled_of(definition)
        sent = {k: v for k, v in without_internal(settings).items() if not (k in filled and filled[k] == v)}
        checked = checked_settings(edited(SENT, previous, {**sent, **key.json}) | key.json)
        cluster, connector_settings = await self._wanted(checked, filled)
        await self._update(definition, spec_of(key, connector_settings, cluster.name))
        return await self.get(key)

    async def delete(self, key: ObjectKey) -> None:
        """Deletes a connector. Raises OharaError while a running worker cluster has it."""
        if await lookups.definition(self._control, key) is None:
            return
        definition = await self._undisturbed(key)
        if is_there(definition) and is_wanted(await self._cluster_of(definition)):
            raise must_be_stopped(KIND, key)
        request = pb.DeleteConnectorDefinitionRequest(name=definition.name, keep_connector=True)
        try:
            await self._control.ask(request)
        except NotFound:
            return

    async def act(self, key: ObjectKey, verb: str, call: OharaCall) -> None:
        """Starts, stops, pauses or resumes a connector. `force` has no effect here."""
        if verb not in ("start", "stop", "pause", "resume"):
            raise unsupported(call.target)
        definition = await self._definition(key)
        cluster = await self._cluster_of(definition)
        match verb:
            case "start":
                await self._start(key, definition, cluster)
            case "stop":
                if (is_there(definition) or definition.status.applying) and is_wanted(cluster):
                    await self._apply(key, definition, ABSENT)
            case _:
                await self._steer(key, definition, cluster, PAUSED if verb == "pause" else RUNNING)

    async def _start(self, key: ObjectKey, definition: ConnectorDefinition, cluster: WorkerCluster | None) -> None:
        worker = _worker_key(definition, cluster)
        settings = settings_of(key, definition, worker)
        if not settings[TOPIC_KEYS]:
            raise bad_value(f"{TOPIC_KEYS} can't be empty")
        cluster = checked_running("worker", worker, cluster, is_wanted)
        topics = await self._running_topics(settings)
        if is_there(definition) and not definition.status.applying:
            return
        await self._check_brokers(cluster, topics)
        if not (definition.status.applying and definition.goal == RUNNING):
            definition = await self._undisturbed(key)
            _, connector_settings = await self._wanted(settings, filled_of(definition))
            spec = spec_of(key, connector_settings, definition.spec.worker_cluster)
            if _is_made_here(definition) and spec.config != definition.spec.config:
                definition = await self._update(definition, spec)
            await self._apply(key, definition, RUNNING)

    async def _steer(
        self, key: ObjectKey, definition: ConnectorDefinition, cluster: WorkerCluster | None,
        goal: DefinitionGoal.ValueType,
    ) -> None:  # fmt: skip
        if not is_wanted(cluster):
            raise must_run("worker", [_worker_key(definition, cluster)])
        definition = await settled(partial(self._definition, key), _is_changing)
        if not is_there(definition):
            raise must_run(KIND, [key])
        if definition.goal != goal or definition.status.drifted:
            await self._apply(key, definition, goal)

    async def _apply(self, key: ObjectKey, definition: ConnectorDefinition, goal: DefinitionGoal.ValueType) -> None:
        if definition.status.applying:
            if definition.goal == goal:
                return
            definition = await self._undisturbed(key)
        await self._control.ask(pb.ApplyConnectorDefinitionRequest(name=definition.name, goal=goal))

    async def _update(self, definition: ConnectorDefinition, spec: Any) -> ConnectorDefinition:
        if not _is_made_here(definition):
            spec.ClearField("origin")
            spec.connector = definition.spec.connector
        request = pb.UpdateConnectorDefinitionRequest(name=definition.name, spec=spec)
        answer = await self._control.ask(request)
        updated: ConnectorDefinition = answer.connector_definition
        return updated

    async def _wanted(
        self, settings: Settings, filled: Mapping[str, Any] | None = None
    ) -> tuple[WorkerCluster, ConnectorSettings]:
        """Returns the worker cluster of settings, and the input of `spec_of` for them. Raises OharaError for an unknown
        worker cluster or topic."""
        worker = key_of(settings[WORKER_KEY], WORKER_KEY)
        if (cluster := await lookups.worker_cluster(self._control, worker)) is None:
            raise not_stored("worker", [worker])
        keys = [key_of(topic_key, TOPIC_KEYS) for topic_key in settings[TOPIC_KEYS]]
        topics = {key: await lookups.topic(self._control, key) for key in dict.fromkeys(keys)}
        if missing := [key for key, topic in topics.items() if topic is None]:
            raise not_stored("topic", missing)
        info = None
        if answers(cluster):
            info = await self._classes.of_class(cluster, settings[CLASS], seconds=CLASS_SECONDS)
        names = [topic.spec.topic for topic in topics.values() if topic is not None]
        return cluster, ConnectorSettings(settings, info, names, filled or {})

    async def _running_topics(self, settings: Settings) -> dict[ObjectKey, Any]:
        """Returns the topics of a connector. Waits for topics that are just changing; raises OharaError for topics that
        do not exist or do not run."""
        running_topics: dict[ObjectKey, Any] = {}
        for key in dict.fromkeys(key_of(topic_key, TOPIC_KEYS) for topic_key in settings[TOPIC_KEYS]):
            read = partial(lookups.topic, self._control, key)
            running_topics[key] = await settled(read, lambda topic: topic is not None and is_topic_changing(topic))
        if missing := [key for key, topic in running_topics.items() if topic is None]:
            raise not_stored("topic", missing)
        if stopped := [key for key, topic in running_topics.items() if not runs(topic)]:
            raise must_run("topic", stopped)
        return running_topics

    async def _check_brokers(self, cluster: WorkerCluster, topics: Mapping[ObjectKey, Any]) -> None:
        """Raises OharaError for a topic on another broker cluster than the worker cluster's."""
        other = [key for key, topic in topics.items() if topic.spec.broker_cluster != cluster.spec.broker_cluster]
        if not other:
            return
        brokers = await lookups.broker_clusters(self._control)

        def shown(name: str) -> ObjectKey | str:
            return (shown_key(name, brokers[name].spec.origin) if name in brokers else None) or name

        raise illegal_argument(
            f"Connector app counts on broker cluster:{shown(cluster.spec.broker_cluster)} but topic:{other[0]} is on "
            f"another broker cluster:{shown(topics[other[0]].spec.broker_cluster)}"
        )

    async def _definition(self, key: ObjectKey) -> ConnectorDefinition:
        if (definition := await lookups.definition(self._control, key)) is None:
            raise not_found(KIND, key)
        return definition

    async def _undisturbed(self, key: ObjectKey) -> ConnectorDefinition:
        read = partial(self._definition, key)
        return await undisturbed(
            self._control, read, _is_changing, lambda definition: definition.status.operation, f"connector {key}"
        )

    async def _cluster_of(self, definition: ConnectorDefinition) -> WorkerCluster | None:
        return await lookups.worker_cluster_named(self._control, definition.spec.worker_cluster)


async def _read_definitions(control: OharaControl) -> Sequence[ConnectorDefinition]:
    return await control.all(pb.ListConnectorDefinitionsRequest)


def checked_settings(settings: Settings) -> Settings:
    """Returns the settings. Raises OharaError for illegal values that the table of settings does not cover."""
    check_columns(settings[COLUMNS])
    if settings[CHECK_RULE] not in CHECK_RULES:
        raise bad_value(f"{CHECK_RULE}: {settings[CHECK_RULE]!r} is not one of {', '.join(CHECK_RULES)}")
    return settings


def without_internal(settings: Settings) -> Settings:
    """Returns the settings of a request without the derived ones."""
    return {k: v for k, v in settings.items() if k not in INTERNAL}


def _json(
    key: ObjectKey, definition: ConnectorDefinition, cluster: WorkerCluster | None, nodes: Mapping[str, str]
) -> Json:
    answer = answer_of(key, definition, _worker_key(definition, cluster))
    return answer | life(definition, cluster, nodes, query_time=time.time_ns() // 1_000_000)


def _worker_key(definition: ConnectorDefinition, cluster: WorkerCluster | None) -> ObjectKey:
    shown = None if cluster is None else shown_key(cluster.name, cluster.spec.origin)
    return shown or ObjectKey("default", definition.spec.worker_cluster)


def _is_changing(definition: ConnectorDefinition) -> bool:
    return bool(definition.status.applying)


def _is_made_here(definition: ConnectorDefinition) -> bool:
    return definition.spec.HasField("origin")
