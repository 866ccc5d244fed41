"""`/v0/brokers`: broker clusters on our nodes, and those created outside this API, which workers can use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import broker_cluster_service_pb2 as pb
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerCluster
from keelman.api.connect.v1.topic_pb2 import TOPIC_GOAL_PRESENT
from keelman.api.connect.v1.topic_service_pb2 import ListTopicsRequest
from keelman.gateway.ohara.clusters import starting
from keelman.gateway.ohara.clusters.broker_specs import ALL, NODE_NAMES, changed_spec, ports_of, spec_of
from keelman.gateway.ohara.clusters.known_clusters import (
    BROKER,
    PLACED,
    SHABONDI,
    STREAM,
    WORKER,
    ZOOKEEPER,
    KnownClusters,
    OharaCluster,
    broker_of,
    read_known,
)
from keelman.gateway.ohara.clusters.processes import RUNNING, is_wanted
from keelman.gateway.ohara.clusters.volume_checks import check_volumes
from keelman.gateway.ohara.definitions.broker import LOG_DIRS, ZOOKEEPER_CLUSTER_KEY
from keelman.gateway.ohara.definitions.common import DENIED_NODES
from keelman.gateway.ohara.documents.zookeepers import cluster_json
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.hosts import node_key, own_node
from keelman.gateway.ohara.state.structs import as_sent
from keelman.gateway.ohara.wire.call import OharaCall
from keelman.gateway.ohara.wire.errors import bad_value, illegal_argument, illegal_state
from keelman.gateway.ohara.wire.keys import MAX_NAMES, ObjectKey, checked_key, key_of, own_name, shown_key
from keelman.gateway.ohara.wire.resource import Json, OharaResource
from keelman.gateway.ohara.wire.values import Settings, created, edited
from keelman.gateway.ohara.wire.wording import exists, must_be_stopped, must_run, not_found, not_stored
from keelman.model.errors import AlreadyExists, FailedPrecondition, NotFound, Unavailable


class Brokers(OharaResource):
    """Broker clusters."""

    def __init__(self, control: OharaControl) -> None:
        self._control = control

    async def list(self) -> Sequence[Json]:
        """Returns all broker clusters."""
        return [cluster_json(cluster) for cluster in (await read_known(self._control, BROKER)).of(BROKER)]

    async def get(self, key: ObjectKey) -> Json:
        """Returns one broker cluster."""
        directory = await read_known(self._control, BROKER)
        return cluster_json(await self._whole(directory.found(BROKER, key), directory))

    async def create(self, settings: Settings) -> Json:
        """Creates a stopped broker cluster, with a client port that is free on all of its nodes."""
        directory = await read_known(self._control, BROKER, ZOOKEEPER, PLACED)
        complete = created(ALL, settings)
        key = checked_key(complete["group"], complete["name"])
        folders = await self._check(complete, directory)
        if directory.get(BROKER, key) is not None:
            raise exists(BROKER, key)
        try:
            return _json(await self._create(key, complete, folders), directory)
        except AlreadyExists:
            raise exists(BROKER, key) from None

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        """Changes a stopped broker cluster, or creates one. Raises Conflict or AlreadyExists if another caller was
        faster."""
        directory = await read_known(self._control, BROKER, ZOOKEEPER, PLACED)
        if (cluster := directory.get(BROKER, key)) is None:
            complete = created(ALL, {**settings, **key.json})
            return _json(await self._create(key, complete, await self._check(complete, directory)), directory)
        if cluster.life.state:
            raise must_be_stopped(BROKER, key)
        cluster = await self._whole(cluster, directory)
        complete = edited(ALL, cluster.settings, {**settings, **key.json})
        folders = await self._check(complete, directory)
        return _json(await self._update(cluster, complete, folders), directory)

    async def delete(self, key: ObjectKey) -> None:
        """Deletes a stopped and unused broker cluster, with its data."""
        directory = await read_known(self._control)
        if (cluster := directory.get(BROKER, key)) is None:
            return
        starting.check_not_running(cluster)
        await self._check_unused(cluster, directory, running=False)
        starting.check_stopped(cluster)
        with suppress(NotFound):  # another caller was faster
            await self._ask(pb.DeleteBrokerClusterRequest, cluster)

    async def act(self, key: ObjectKey, verb: str, call: OharaCall) -> None:
        """Starts or stops the brokers, or adds a node."""
        if verb in ("start", "stop"):
            directory = await read_known(self._control, BROKER, ZOOKEEPER, PLACED)
            if verb == "start":
                await self._start(directory.found(BROKER, key), directory)
            else:
                await self._stop(
                    directory.found(BROKER, key), directory, force=call.parameter("force").lower() == "true"
                )
        else:
            await self._add(key, verb)

    async def remove(self, key: ObjectKey, part: str, call: OharaCall) -> None:
        """Removes a node; its broker ends. Raises OharaError if data would be lost."""
        await self._remove(key, part)

    async def _whole(self, cluster: OharaCluster, directory: KnownClusters) -> OharaCluster:
        """Returns the cluster with its settings as they were sent; lists hide settings that are named like secrets."""
        request = pb.GetBrokerClusterRequest(name=cluster.made.name, whole_extra=True)
        try:
            broker_cluster = (await self._control.ask(request)).broker_cluster
        except NotFound:
            raise not_found(BROKER, cluster.key) from None
        return broker_of(broker_cluster, directory.hosts, cluster.processes) or cluster

    async def _start(self, cluster: OharaCluster, directory: KnownClusters) -> None:
        if cluster.life.state:
            if not is_wanted(cluster.made.status.state):
                raise illegal_state(f"KeyKind({cluster.key},{BROKER}) is stopping")
            return
        starting.check_start(cluster, ports_of(cluster.made.spec), directory)
        zookeeper = cluster.uses
        if zookeeper is not None:
            zookeeper_cluster = directory.get(ZOOKEEPER, zookeeper)
            if zookeeper_cluster is None:
                raise not_stored(ZOOKEEPER, [zookeeper])
            if zookeeper_cluster.life.state != RUNNING and zookeeper_cluster.made is not None:
                raise must_run(ZOOKEEPER, [zookeeper])
            for other in directory.users(BROKER, zookeeper, running=True):
                raise illegal_argument(f"zk cluster:{zookeeper} is already used by broker cluster:{other.key.name}")
        folders = await check_volumes(self._control, _volumes(cluster.settings), running=True)
        if folders and folders != list(cluster.made.spec.managed.data_folders):  # the path of a volume has changed
            await self._update(cluster, cluster.settings, folders)
        await self._ask(pb.StartBrokerClusterRequest, cluster)

    async def _stop(self, cluster: OharaCluster, directory: KnownClusters, *, force: bool) -> None:
        if not cluster.life.state:
            return
        await self._check_unused(cluster, directory, running=True)
        _check_managed(cluster, "starts and stops")
        starting.check_begun(cluster, force=force)
        await self._ask(pb.StopBrokerClusterRequest, cluster, force=force)

    async def _add(self, key: ObjectKey, node: str) -> None:
        directory = await read_known(self._control, BROKER)
        cluster = directory.found(BROKER, key)
        if node in DENIED_NODES:
            raise bad_value(f"the {node} is protected word")
        if directory.hosts.get(node) is None:
            raise not_found("node", node_key(node))
        if not _has(cluster, node):
            await self._update(cluster, {**cluster.settings, NODE_NAMES: [*cluster.node_names, node]})

    async def _remove(self, key: ObjectKey, node: str) -> None:
        directory = await read_known(self._control, BROKER)
        cluster = directory.get(BROKER, key)
        if cluster is None or not _has(cluster, node):
            return
        if len(cluster.node_names) == 1:
            raise illegal_state("there is only one instance. Please call remove to delete whole cluster")
        left = [name for name in cluster.node_names if own_node(name) != own_node(node)]
        try:
            await self._update(cluster, {**cluster.settings, NODE_NAMES: left})
        except Unavailable as error:  # the brokers must answer which data would be lost
            raise illegal_state(f"{node} cannot be removed now: {error.message}") from None

    async def _check(self, settings: Settings, directory: KnownClusters) -> Sequence[str]:
        """Returns the paths of the volumes. Raises OharaError for a named object that does not exist."""
        directory.hosts.check(settings[NODE_NAMES])
        zookeeper = key_of(settings[ZOOKEEPER_CLUSTER_KEY])
        if directory.get(ZOOKEEPER, zookeeper) is None:
            raise not_stored(ZOOKEEPER, [zookeeper])
        return await check_volumes(self._control, _volumes(settings), running=False)

    async def _check_unused(self, cluster: OharaCluster, directory: KnownClusters, *, running: bool) -> None:
        for kind in (WORKER, STREAM, SHABONDI):
            starting.check_unused(cluster, directory.users(kind, cluster.key, running=running))
        if topics := await topics_on(self._control, cluster.made.name, present=running):
            raise starting.used(cluster, "topic", topics)

    async def _create(self, key: ObjectKey, settings: Settings, folders: Sequence[str]) -> BrokerCluster:
        """Creates a broker cluster. Raises AlreadyExists if another cluster has got the key meanwhile."""
        spec = spec_of(settings, key, folders)
        for number in range(1, MAX_NAMES + 1):  # a former cluster of this key may still be in deletion
            name = own_name(key, number)
            request = pb.CreateBrokerClusterRequest(name=name, spec=spec, stopped=True, choose_ports=True)
            try:
                broker_cluster: BrokerCluster = (await self._control.ask(request)).broker_cluster
                return as_sent(broker_cluster, spec)
            except AlreadyExists:
                continue
            except FailedPrecondition as error:
                if error.reason == "ORIGIN_IN_USE":
                    raise AlreadyExists(error.message) from None
                raise starting.worded(error, await read_known(self._control), name, key) from None
        raise AlreadyExists(f"{BROKER} cluster:{key} and those that were deleted before it have all of its names")

    async def _update(
        self, cluster: OharaCluster, settings: Mapping[str, Any], folders: Sequence[str] | None = None
    ) -> BrokerCluster:
        present: BrokerCluster = cluster.made
        _check_managed(cluster, "changes")
        spec = changed_spec(settings, cluster.settings, present.spec)
        if folders is not None and LOG_DIRS in settings:
            spec.managed.data_folders[:] = folders
        mask = FieldMask(paths=["managed", "extra"])
        answer = await self._ask(pb.UpdateBrokerClusterRequest, cluster, etag=present.etag, spec=spec, update_mask=mask)
        broker_cluster: BrokerCluster = answer.broker_cluster
        return as_sent(broker_cluster, spec)

    async def _ask(self, request: Any, cluster: OharaCluster, **fields: Any) -> Any:
        """Returns the answer of a verb of the state service; raises its failed preconditions in Ohara's words."""
        name = cluster.made.name
        try:
            return await self._control.ask(request(name=name, **fields))
        except FailedPrecondition as error:
            raise starting.worded(error, await read_known(self._control), name, cluster.key) from None


def _check_managed(cluster: OharaCluster, verb: str) -> None:
    if cluster.made.spec.WhichOneof("kind") != "managed":
        raise illegal_argument(f"{BROKER} cluster:{cluster.key} is external: its operator {verb} the brokers")


def _has(cluster: OharaCluster, node: str) -> bool:
    return own_node(node) in map(own_node, cluster.node_names)


def _volumes(settings: Mapping[str, Any]) -> list[ObjectKey]:
    return [key_of(volume, LOG_DIRS) for volume in settings.get(LOG_DIRS, [])]


def _json(broker_cluster: BrokerCluster, directory: KnownClusters) -> Json:
    cluster = broker_of(broker_cluster, directory.hosts, [])
    assert cluster is not None
    return cluster_json(cluster)


async def topics_on(control: OharaControl, broker_cluster: str, *, present: bool) -> list[ObjectKey]:
    """Returns the keys of the topics on a broker cluster, given by its own name; with `present` only topics with the
    goal PRESENT."""
    topics = await control.all(ListTopicsRequest, broker_cluster=broker_cluster)
    keys = [
        shown_key(topic.name, topic.spec.origin) for topic in topics if topic.goal == TOPIC_GOAL_PRESENT or not present
    ]
    return [key for key in keys if key is not None]
