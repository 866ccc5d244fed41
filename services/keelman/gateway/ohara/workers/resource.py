"""Serves workers: creates, changes, starts, stops and reads them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from keelman.api.connect.v1 import worker_cluster_service_pb2 as pb
from keelman.api.connect.v1.broker_cluster_pb2 import CLUSTER_STATE_DELETING, CLUSTER_STATE_STOPPING, BrokerCluster
from keelman.api.connect.v1.plugin_pb2 import PluginRef
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster, WorkerClusterSpec
from keelman.api.node.v1.node_pb2 import NODE_STATE_ONLINE
from keelman.gateway.ohara.clusters import worker_specs
from keelman.gateway.ohara.clusters.known_clusters import BROKER, WORKER, OharaCluster, read_known, worker_of
from keelman.gateway.ohara.clusters.ports import check_ports
from keelman.gateway.ohara.clusters.processes import RUNNING
from keelman.gateway.ohara.clusters.starting import IMAGES, check_begun, default_image, used
from keelman.gateway.ohara.definitions.common import DENIED_NODES
from keelman.gateway.ohara.definitions.worker import BROKER_CLUSTER_KEY, PLUGIN_KEYS, SHARED_JAR_KEYS
from keelman.gateway.ohara.files.keys import files_by_key
from keelman.gateway.ohara.state import lookups
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.hosts import Hosts, node_key
from keelman.gateway.ohara.state.structs import as_sent
from keelman.gateway.ohara.wire.call import OharaCall
from keelman.gateway.ohara.wire.errors import bad_value, illegal_argument, illegal_state
from keelman.gateway.ohara.wire.keys import MAX_NAMES, ObjectKey, key_of, own_name, shown_key, unshown_key
from keelman.gateway.ohara.wire.resource import Json, OharaResource
from keelman.gateway.ohara.wire.values import Settings, created, edited
from keelman.gateway.ohara.wire.wording import exists, must_be_stopped, must_run, not_found, not_stored
from keelman.gateway.ohara.workers.reading import key_of_brokers, read_hosts, read_worker, users_of
from keelman.gateway.ohara.workers.refusals import NO_PORTS, worded
from keelman.model.errors import AlreadyExists, Conflict, FailedPrecondition, KeelmanError, NotFound

Refs = dict[str, list[PluginRef]]
"""The plugins that a worker cluster names as files, by the setting."""
TRIES = 5
"""Attempts at a change that conflicts with others' changes."""


class Workers(OharaResource):
    """Worker clusters."""

    def __init__(self, control: OharaControl) -> None:
        self._control = control

    async def list(self) -> Sequence[Json]:
        """Returns all worker clusters, sorted by key."""
        return [_answer(cluster) for cluster in (await read_known(self._control)).of(WORKER)]

    async def get(self, key: ObjectKey) -> Json:
        """Returns one worker cluster."""
        return _answer((await self._read(key))[1])

    async def create(self, settings: Settings) -> Json:
        """Creates a stopped worker cluster."""
        complete = created(worker_specs.ALL, settings)
        return await self._create(ObjectKey(complete["group"], complete["name"]), complete)

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        """Changes a stopped worker cluster, or creates one."""
        for _ in range(TRIES):
            hosts, present = await read_worker(self._control, key)
            if present is None:
                return await self._create(key, created(worker_specs.ALL, settings | key.json))
            if present.life.state:
                raise must_be_stopped(WORKER, key)
            complete = edited(worker_specs.ALL, present.settings, settings)
            refs, brokers = await self._references(complete, hosts)
            spec, fields = worker_specs.changed_spec(present.made.spec, present.settings, complete, brokers.name, refs)
            with suppress(Conflict):
                return _shown(await self._update(present, spec, fields), hosts, brokers)
        raise illegal_state(f"{key} is being changed by others: try again")

    async def delete(self, key: ObjectKey) -> None:
        """Deletes a stopped worker cluster that no connector names."""
        _, present = await read_worker(self._control, key)
        if present is None:
            return
        if present.life.state == RUNNING:
            raise must_be_stopped(WORKER, key)
        await self._check_unused(present, running=False)
        if present.life.state:
            raise illegal_argument(f"You cannot delete a non-stopped WorkerClusterInfo :{key}")
        request = pb.DeleteWorkerClusterRequest(name=present.made.name, only_unused=True)
        with suppress(NotFound):
            try:
                await self._control.ask(request)
            except FailedPrecondition:  # a connector was created since the check
                await self._check_unused(present, running=False)
                raise

    async def act(self, key: ObjectKey, verb: str, call: OharaCall) -> None:
        """Starts, stops, or adds a node."""
        match verb:
            case "start":
                await self._start(key)
            case "stop":
                await self._stop(key, force=call.parameter("force").lower() == "true")
            case _ if verb in DENIED_NODES:
                raise bad_value(f"the {verb} is protected word")
            case _:
                await self._add_node(key, verb)

    async def remove(self, key: ObjectKey, part: str, call: OharaCall) -> None:
        """Removes a node."""
        for _ in range(TRIES):
            hosts, present = await read_worker(self._control, key)
            host = hosts.get(part)
            name = part if host is None else host.hostname
            if present is None or name not in present.node_names:
                return
            if len(present.node_names) == 1:
                raise illegal_state("there is only one instance. Please call remove to delete whole cluster")
            if await self._has_nodes(present, [node_name for node_name in present.node_names if node_name != name]):
                return
        raise illegal_state(f"{key} is being changed by others: try again")

    async def _create(self, key: ObjectKey, settings: Settings) -> Json:
        hosts, present = await asyncio.gather(read_hosts(self._control), lookups.worker_cluster(self._control, key))
        refs, brokers = await self._references(settings, hosts)
        if present is not None:
            raise exists(WORKER, key)
        request = pb.CreateWorkerClusterRequest(
            spec=worker_specs.new_spec(settings, key, brokers.name, refs),
            choose_ports=worker_specs.CLIENT_PORT not in settings or worker_specs.JMX_PORT not in settings,
        )
        for number in range(1, MAX_NAMES + 1):
            request.name = own_name(key, number)
            try:
                answer = await self._control.ask(request)
                return _shown(as_sent(answer.worker_cluster, request.spec), hosts, brokers)
            except AlreadyExists:
                if not await self._is_deleted(request.name):
                    break
            except KeelmanError as error:
                raise worded(error, key, await read_known(self._control), worker_specs.ports_of(request.spec)) from None
        raise exists(WORKER, key)

    async def _is_deleted(self, name: str) -> bool:
        """Tells whether a worker cluster is being deleted, or is gone."""
        try:
            worker_cluster = (await self._control.ask(pb.GetWorkerClusterRequest(name=name))).worker_cluster
        except NotFound:
            return True
        return bool(worker_cluster.status.state == CLUSTER_STATE_DELETING)

    async def _start(self, key: ObjectKey) -> None:
        directory = await read_known(self._control)
        present = directory.found(WORKER, key)
        if present.life.state:
            if present.made.status.state == CLUSTER_STATE_STOPPING:
                raise illegal_state(f"KeyKind({key},worker) is stopping")
            return
        directory.hosts.check(present.node_names)
        _check_images(present.node_names, present.settings["imageName"], directory.hosts)
        check_ports(present.holder, directory.holders())
        broker = key_of(present.settings[BROKER_CLUSTER_KEY])
        broker_cluster = directory.get(BROKER, broker)
        if broker_cluster is not None and broker_cluster.life.state != RUNNING:  # else the state service judges it
            raise must_run(BROKER, [broker])
        await self._ask(pb.StartWorkerClusterRequest(name=present.made.name), key)

    async def _stop(self, key: ObjectKey, *, force: bool) -> None:
        _, present = await self._read(key)
        await self._check_unused(present, running=True)
        check_begun(present, force=force)
        if present.life.state:
            await self._ask(pb.StopWorkerClusterRequest(name=present.made.name, force=force), key)

    async def _add_node(self, key: ObjectKey, hostname: str) -> None:
        for _ in range(TRIES):
            hosts, present = await self._read(key)
            host = hosts.get(hostname)
            if host is None:
                raise not_found("node", node_key(hostname))
            if host.hostname in present.node_names:
                return
            if present.life.state:
                _check_images([host.hostname], present.settings["imageName"], hosts)
            if await self._has_nodes(present, [*present.node_names, host.hostname]):
                return
        raise illegal_state(f"{key} is being changed by others: try again")

    async def _has_nodes(self, present: OharaCluster, hostnames: Sequence[str]) -> bool:
        """Sets the nodes of a worker cluster; returns False if another caller changed it meanwhile."""
        spec = WorkerClusterSpec()
        spec.CopyFrom(present.made.spec)
        worker_specs.put_nodes(spec, hostnames)
        with suppress(Conflict):
            await self._update(present, spec, ["nodes"])
            return True
        return False

    async def _update(self, present: OharaCluster, spec: WorkerClusterSpec, fields: Sequence[str]) -> WorkerCluster:
        """Changes some fields of the spec. Raises Conflict if another caller changed the cluster meanwhile."""
        if not fields:
            unchanged: WorkerCluster = present.made
            return unchanged
        request = pb.UpdateWorkerClusterRequest(name=present.made.name, etag=present.made.etag, spec=spec)
        request.update_mask.paths.extend(fields)
        worker_cluster: WorkerCluster = (
            await self._ask(request, present.key, worker_specs.ports_of(spec))
        ).worker_cluster
        return as_sent(worker_cluster, spec)

    async def _read(self, key: ObjectKey) -> tuple[Hosts, OharaCluster]:
        """Returns the nodes and a worker cluster. Raises OharaError if it does not exist."""
        hosts, cluster = await read_worker(self._control, key)
        if cluster is None:
            raise not_found(WORKER, key)
        return hosts, cluster

    async def _references(self, settings: Mapping[str, Any], hosts: Hosts) -> tuple[Refs, BrokerCluster]:
        """Returns the files and the broker cluster that settings name. Raises OharaError for the first that does not
        exist, in the order files, nodes, broker cluster."""
        refs = await refs_of(self._control, settings)
        hosts.check(settings[worker_specs.NODE_NAMES])
        key = key_of(settings[BROKER_CLUSTER_KEY])
        brokers = await lookups.broker_cluster(self._control, key)
        if brokers is None:
            raise not_stored(BROKER, [key])
        return refs, brokers

    async def _check_unused(self, cluster: OharaCluster, *, running: bool) -> None:
        """Raises OharaError while a connector, with `running` a running connector, names the worker cluster."""
        if keys := await users_of(self._control, cluster, running=running):
            raise used(cluster, "connector", keys)

    async def _ask(self, request: Any, key: ObjectKey, ports: frozenset[int] = NO_PORTS) -> Any:
        """Returns the answer of a write. Raises Conflict and NotFound unchanged, other errors in Ohara's words."""
        try:
            return await self._control.ask(request)
        except (Conflict, NotFound):
            raise
        except KeelmanError as error:
            raise worded(error, key, await read_known(self._control), ports) from None


def _check_images(hostnames: Sequence[str], image: str, hosts: Hosts) -> None:
    """Raises OharaError for a node without its agent, and for an image that is not a worker's."""
    for name in hostnames:
        host = hosts.get(name)
        is_there = host is not None and host.node.status.state == NODE_STATE_ONLINE
        images = [default_image(kind) for kind in IMAGES] if is_there else []
        if not (images and image.rpartition("/")[2].startswith(f"{IMAGES[WORKER]}:")):
            raise illegal_argument(f"{name} does not have image:{image}. It has images:{','.join(images) or 'N/A'}")


def _shown(worker_cluster: WorkerCluster, hosts: Hosts, brokers: BrokerCluster) -> Json:
    """Returns the answer for a worker cluster that was just written and does not run."""
    cluster = worker_of(worker_cluster, hosts, [], {brokers.name: key_of_brokers(brokers)})
    if cluster is None:  # deleted in between
        raise not_found(
            WORKER, shown_key(worker_cluster.name, worker_cluster.spec.origin) or unshown_key(worker_cluster.name)
        )
    return _answer(cluster)


def _answer(cluster: OharaCluster) -> Json:
    """Returns the answer for a worker cluster."""
    message = cluster.made
    modified = int(time.time() * 1000) if cluster.life.state else message.update_time.ToMilliseconds()
    return {**cluster.settings, **cluster.life.fields, "lastModified": modified}


async def refs_of(control: OharaControl, settings: Mapping[str, Any]) -> Refs:
    """Returns the plugins by the settings that name them, each once. Raises OharaError for a file that
    does not exist."""
    named = {
        key: [key_of(reference, key) for reference in settings.get(key, [])] for key in (PLUGIN_KEYS, SHARED_JAR_KEYS)
    }
    if not any(named.values()):
        return {key: [] for key in named}
    plugins = await files_by_key(control)
    refs: Refs = {}
    for setting, keys in named.items():
        refs[setting] = []
        for key in dict.fromkeys(keys):
            if key not in plugins:
                raise not_found("file", key)
            plugin = plugins[key]
            refs[setting].append(PluginRef(name=plugin.name, version=plugin.version, sha256=plugin.sha256))
    return refs
