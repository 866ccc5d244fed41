"""`/v0/brokers`: broker clusters on our nodes, and those that were made past this API, on which workers can be put."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import broker_cluster_service_pb2 as pb
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerCluster
from keelman.gateway.ohara.brokers.specs import ALL, CLIENT_PORT, JMX_PORT, NODE_NAMES, changed_spec, spec_of
from keelman.gateway.ohara.brokers.topics import topics_on
from keelman.gateway.ohara.call import Call
from keelman.gateway.ohara.control import Control
from keelman.gateway.ohara.definitions.broker import LOG_DIRS, ZOOKEEPER_CLUSTER_KEY
from keelman.gateway.ohara.definitions.common import DENIED_NODES
from keelman.gateway.ohara.errors import bad_value, illegal_argument, illegal_state
from keelman.gateway.ohara.hosts import node_key, own_node
from keelman.gateway.ohara.keys import MAX_NAMES, ObjectKey, checked_key, key_of, own_name
from keelman.gateway.ohara.known import (
    BROKER,
    PLACED,
    SHABONDI,
    STREAM,
    WORKER,
    ZOOKEEPER,
    Cluster,
    Known,
    broker_of,
    read_known,
)
from keelman.gateway.ohara.processes import RUNNING, is_wanted
from keelman.gateway.ohara.resource import Json, Resource
from keelman.gateway.ohara.starting import (
    check_begun,
    check_not_running,
    check_start,
    check_stopped,
    check_unused,
    free_port,
    used,
    worded,
)
from keelman.gateway.ohara.values import Settings, created, edited
from keelman.gateway.ohara.volume_checks import check_volumes
from keelman.gateway.ohara.wording import exists, must_be_stopped, must_run, not_found, not_stored
from keelman.gateway.ohara.zookeepers import cluster_json
from keelman.model.errors import AlreadyExists, FailedPrecondition, NotFound, Unavailable


class Brokers(Resource):
    """Broker clusters."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._stubs = control.broker_clusters

    async def list(self) -> Sequence[Json]:
        """All broker clusters."""
        return [cluster_json(one) for one in (await read_known(self._control, BROKER)).of(BROKER)]

    async def get(self, key: ObjectKey) -> Json:
        """One broker cluster."""
        return cluster_json(_found(await read_known(self._control, BROKER), key))

    async def create(self, settings: Settings) -> Json:
        """A broker cluster that is stopped, with a port for clients that is free on all of its nodes."""
        known = await read_known(self._control, BROKER, ZOOKEEPER, PLACED)
        made = created(ALL, settings)
        key = checked_key(made["group"], made["name"])
        await self._check(made, known)
        if known.get(BROKER, key) is not None:
            raise exists(BROKER, key)
        try:
            return _json(await self._create(key, made, known), known)
        except AlreadyExists:
            raise exists(BROKER, key) from None

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        """A stopped broker cluster that is changed, or a new one. Raises Conflict or AlreadyExists where others were
        faster."""
        known = await read_known(self._control, BROKER, ZOOKEEPER, PLACED)
        if (cluster := known.get(BROKER, key)) is None:
            made = created(ALL, {**settings, **key.json})
            await self._check(made, known)
            return _json(await self._create(key, made, known), known)
        if cluster.life.state:
            raise must_be_stopped(BROKER, key)
        made = edited(ALL, cluster.settings, {**settings, **key.json})
        await self._check(made, known)
        return _json(await self._update(cluster, made), known)

    async def delete(self, key: ObjectKey) -> None:
        """Deletes a stopped broker cluster that nothing uses, with its data."""
        known = await read_known(self._control)
        if (cluster := known.get(BROKER, key)) is None:
            return
        check_not_running(cluster)
        await self._check_unused(cluster, known, running=False)
        check_stopped(cluster)
        with suppress(NotFound):  # somebody else was faster
            await self._ask(self._stubs.DeleteBrokerCluster, pb.DeleteBrokerClusterRequest, cluster)

    async def act(self, key: ObjectKey, verb: str, call: Call) -> None:
        """Starts or stops the brokers, or takes a further node."""
        if verb in ("start", "stop"):
            known = await read_known(self._control, BROKER, ZOOKEEPER, PLACED)
            if verb == "start":
                await self._start(_found(known, key), known)
            else:
                await self._stop(_found(known, key), known, force=call.parameter("force").lower() == "true")
        else:
            await self._add(key, verb)

    async def remove(self, key: ObjectKey, part: str, call: Call) -> None:
        """Takes a node away; its broker ends. Raises OharaError where data would be lost."""
        await self._remove(key, part)

    async def _start(self, cluster: Cluster, known: Known) -> None:
        if cluster.life.state:
            if not is_wanted(cluster.made.status.state):
                raise illegal_state(f"KeyKind({cluster.key},{BROKER}) is stopping")
            return
        check_start(cluster, known)
        zookeeper = cluster.uses
        if zookeeper is not None:
            found = known.get(ZOOKEEPER, zookeeper)
            if found is None:
                raise not_stored(ZOOKEEPER, [zookeeper])
            if found.life.state != RUNNING and found.made is not None:
                raise must_run(ZOOKEEPER, [zookeeper])
            for other in known.users(BROKER, zookeeper, running=True):
                raise illegal_argument(f"zk cluster:{zookeeper} is already used by broker cluster:{other.key.name}")
        await check_volumes(self._control, _volumes(cluster.settings), running=True)
        await self._ask(self._stubs.StartBrokerCluster, pb.StartBrokerClusterRequest, cluster)

    async def _stop(self, cluster: Cluster, known: Known, *, force: bool) -> None:
        if not cluster.life.state:
            return
        await self._check_unused(cluster, known, running=True)
        check_begun(cluster, force=force)
        await self._ask(self._stubs.StopBrokerCluster, pb.StopBrokerClusterRequest, cluster)

    async def _add(self, key: ObjectKey, node: str) -> None:
        known = await read_known(self._control, BROKER)
        cluster = _found(known, key)
        if node in DENIED_NODES:
            raise bad_value(f"the {node} is protected word")
        if known.hosts.get(node) is None:
            raise not_found("node", node_key(node))
        if not _has(cluster, node):
            await self._update(cluster, {**cluster.settings, NODE_NAMES: [*cluster.node_names, node]})

    async def _remove(self, key: ObjectKey, node: str) -> None:
        known = await read_known(self._control, BROKER)
        cluster = known.get(BROKER, key)
        if cluster is None or not _has(cluster, node):
            return
        if len(cluster.node_names) == 1:
            raise illegal_state("there is only one instance. Please call remove to delete whole cluster")
        left = [name for name in cluster.node_names if own_node(name) != own_node(node)]
        try:
            await self._update(cluster, {**cluster.settings, NODE_NAMES: left})
        except Unavailable as error:  # what would be lost is asked of the brokers
            raise illegal_state(f"{node} cannot be removed now: {error.message}") from None

    async def _check(self, settings: Settings, known: Known) -> None:
        known.hosts.check(settings[NODE_NAMES])
        zookeeper = key_of(settings[ZOOKEEPER_CLUSTER_KEY])
        if known.get(ZOOKEEPER, zookeeper) is None:
            raise not_stored(ZOOKEEPER, [zookeeper])
        await check_volumes(self._control, _volumes(settings), running=False)

    async def _check_unused(self, cluster: Cluster, known: Known, *, running: bool) -> None:
        for kind in (WORKER, STREAM, SHABONDI):
            check_unused(cluster, known.users(kind, cluster.key, running=running))
        if topics := await topics_on(self._control, cluster.made.name, present=running):
            raise used(cluster, "topic", topics)

    async def _create(self, key: ObjectKey, settings: Settings, known: Known) -> BrokerCluster:
        """Raises AlreadyExists where another one has the key by now."""
        settings.setdefault(JMX_PORT, free_port(known, [settings.get(CLIENT_PORT, 0)]))
        spec = spec_of(settings, key)
        for number in range(1, MAX_NAMES + 1):  # a cluster of the same key may be about to go
            name = own_name(key, number)
            request = pb.CreateBrokerClusterRequest(name=name, spec=spec, stopped=True, choose_ports=True)
            try:
                made: BrokerCluster = (await self._control.ask(self._stubs.CreateBrokerCluster, request)).broker_cluster
                return made
            except AlreadyExists:
                continue
            except FailedPrecondition as error:
                if error.reason == "ORIGIN_IN_USE":
                    raise AlreadyExists(error.message) from None
                raise worded(error, await read_known(self._control), name, key) from None
        raise AlreadyExists(f"{BROKER} cluster:{key} and those that were deleted before it have all of its names")

    async def _update(self, cluster: Cluster, settings: Mapping[str, Any]) -> BrokerCluster:
        present: BrokerCluster = cluster.made
        if present.spec.WhichOneof("kind") != "managed":
            raise illegal_argument(f"{BROKER} cluster:{cluster.key} is external: whoever runs its brokers changes it")
        request = {
            "spec": changed_spec(settings, cluster.settings, present.spec),
            "update_mask": FieldMask(paths=["managed", "extra"]),
        }
        answer = await self._ask(
            self._stubs.UpdateBrokerCluster, pb.UpdateBrokerClusterRequest, cluster, etag=present.etag, **request
        )
        made: BrokerCluster = answer.broker_cluster
        return made

    async def _ask(self, method: Any, request: Any, cluster: Cluster, **fields: Any) -> Any:
        """The answer of a verb of the state service; its errors in Ohara's words, but for those that are dealt with."""
        name = cluster.made.name
        try:
            return await self._control.ask(method, request(name=name, **fields))
        except FailedPrecondition as error:
            raise worded(error, await read_known(self._control), name, cluster.key) from None


def _found(known: Known, key: ObjectKey) -> Cluster:
    if (cluster := known.get(BROKER, key)) is None:
        raise not_found(BROKER, key)
    return cluster


def _has(cluster: Cluster, node: str) -> bool:
    return own_node(node) in map(own_node, cluster.node_names)


def _volumes(settings: Mapping[str, Any]) -> list[ObjectKey]:
    return [key_of(one, LOG_DIRS) for one in settings.get(LOG_DIRS, [])]


def _json(made: BrokerCluster, known: Known) -> Json:
    cluster = broker_of(made, known.hosts, [])
    assert cluster is not None
    return cluster_json(cluster)
