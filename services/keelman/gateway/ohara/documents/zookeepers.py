"""`/v0/zookeepers`: a stand-in with settings and states but no process, for clients that create one before brokers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from keelman.gateway.ohara.clusters.known_clusters import (
    BROKER,
    NODE_NAMES,
    PLACED,
    STATE,
    ZOOKEEPER,
    KnownClusters,
    OharaCluster,
    read_known,
    zookeeper_of,
)
from keelman.gateway.ohara.clusters.processes import RUNNING
from keelman.gateway.ohara.clusters.starting import check_not_running, check_start, check_unused, free_port
from keelman.gateway.ohara.clusters.volume_checks import check_volumes
from keelman.gateway.ohara.definitions.common import DENIED_NODES
from keelman.gateway.ohara.definitions.zookeeper import DATA_DIR, PORTS
from keelman.gateway.ohara.definitions.zookeeper import ZOOKEEPER as SETTINGS
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.stored import Stored
from keelman.gateway.ohara.wire.call import OharaCall
from keelman.gateway.ohara.wire.errors import bad_value, illegal_argument, illegal_state, unsupported_operation
from keelman.gateway.ohara.wire.keys import ObjectKey, checked_key, key_of
from keelman.gateway.ohara.wire.resource import Json, OharaResource
from keelman.gateway.ohara.wire.values import Settings, created, edited
from keelman.gateway.ohara.wire.wording import exists, must_be_stopped
from keelman.model.errors import AlreadyExists


class Zookeepers(OharaResource):
    """Zookeepers. A broker cluster created outside this API has a zookeeper too, with the same key and live nodes."""

    def __init__(self, control: OharaControl) -> None:
        self._control = control
        self._documents = Stored(control, ZOOKEEPER)

    async def list(self) -> Sequence[Json]:
        """Returns all zookeepers."""
        return [cluster_json(cluster) for cluster in (await read_known(self._control, ZOOKEEPER)).of(ZOOKEEPER)]

    async def get(self, key: ObjectKey) -> Json:
        """Returns one zookeeper."""
        if (document := await self._documents.get(key)) is not None:
            return cluster_json(zookeeper_of(document))
        return cluster_json((await read_known(self._control, BROKER)).found(ZOOKEEPER, key))

    async def create(self, settings: Settings) -> Json:
        """Creates a stopped zookeeper."""
        directory = await read_known(self._control, ZOOKEEPER, PLACED)
        checked = created(SETTINGS, settings)
        key = checked_key(checked["group"], checked["name"])
        await self._check(checked, directory)
        if directory.get(ZOOKEEPER, key) is not None:
            raise exists(ZOOKEEPER, key)
        try:
            return await self._create(key, checked, directory)
        except AlreadyExists:
            raise exists(ZOOKEEPER, key) from None

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        """Changes a stopped zookeeper, or creates one. Raises Conflict or AlreadyExists if another caller was
        faster."""
        directory = await read_known(self._control, ZOOKEEPER, PLACED)
        if (cluster := directory.get(ZOOKEEPER, key)) is None:
            checked = created(SETTINGS, {**settings, **key.json})
            await self._check(checked, directory)
            return await self._create(key, checked, directory)
        if cluster.life.state or cluster.made is None:
            raise must_be_stopped(ZOOKEEPER, key)
        checked = edited(SETTINGS, cluster.settings, {**settings, **key.json})
        await self._check(checked, directory)
        stored = await self._documents.put(key, checked, etag=cluster.made.etag)
        return {**checked, "aliveNodes": [], "lastModified": stored.modified}

    async def delete(self, key: ObjectKey) -> None:
        """Deletes a stopped zookeeper that no broker cluster names."""
        directory = await read_known(self._control, ZOOKEEPER)
        if (cluster := directory.get(ZOOKEEPER, key)) is None:
            return
        check_not_running(cluster)
        check_unused(cluster, directory.users(BROKER, key, running=False))
        await self._documents.delete(key)

    async def act(self, key: ObjectKey, verb: str, call: OharaCall) -> None:
        """Starts or stops a zookeeper; refuses to add a node."""
        directory = await read_known(self._control, ZOOKEEPER, PLACED)
        cluster = directory.found(ZOOKEEPER, key)
        match verb:
            case "start" if not cluster.life.state:
                check_start(cluster, cluster.ports, directory)
                if DATA_DIR in cluster.settings:
                    await check_volumes(self._control, [key_of(cluster.settings[DATA_DIR])], running=True)
                await self._keep(cluster, {**cluster.settings, STATE: RUNNING})
            case "stop" if cluster.life.state:
                check_unused(cluster, directory.users(BROKER, key, running=True))
                await self._keep(cluster, cluster.settings)
            case "start" | "stop":
                return
            case _ if verb in DENIED_NODES:
                raise bad_value(f"the {verb} is protected word")
            case _:
                raise unsupported_operation("zookeeper collie doesn't support to add node to a running cluster")

    async def remove(self, key: ObjectKey, part: str, call: OharaCall) -> None:
        """Removes a node from the settings."""
        cluster = (await read_known(self._control, ZOOKEEPER)).get(ZOOKEEPER, key)
        if cluster is None or part not in cluster.node_names:
            return
        if len(cluster.node_names) == 1:
            raise illegal_state("there is only one instance. Please call remove to delete whole cluster")
        left = [name for name in cluster.node_names if name != part]
        state = {STATE: RUNNING} if cluster.life.state else {}
        await self._keep(cluster, {**cluster.settings, NODE_NAMES: left, **state})

    async def _create(self, key: ObjectKey, settings: Settings, directory: KnownClusters) -> Json:
        for port in PORTS:
            settings.setdefault(port, free_port(directory, (settings.get(port_key, 0) for port_key in PORTS)))
        stored = await self._documents.put(key, settings, new=True)
        return {**settings, "aliveNodes": [], "lastModified": stored.modified}

    async def _keep(self, cluster: OharaCluster, content: dict[str, Any]) -> None:
        if cluster.made is None:
            raise illegal_argument(
                f"{ZOOKEEPER} cluster:{cluster.key} belongs to a broker cluster that was not created by this API"
            )
        await self._documents.put(cluster.key, content, etag=cluster.made.etag)

    async def _check(self, settings: Settings, directory: KnownClusters) -> None:
        directory.hosts.check(settings[NODE_NAMES])
        if DATA_DIR in settings:
            await check_volumes(self._control, [key_of(settings[DATA_DIR])], running=False)


def cluster_json(cluster: OharaCluster) -> Json:
    """Returns the answer for a cluster: its settings, and its present life."""
    modified = int(time.time() * 1000) if cluster.life.state else cluster.modified
    return {**cluster.settings, **cluster.life.fields, "lastModified": modified}
