"""`/v0/nodes`: hosts, created before or after their agent registers. User and password are stored, but never used for a
login."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from keelman.api.node.v1 import node_service_pb2 as pb
from keelman.gateway.ohara.clusters.known_clusters import (
    BROKER,
    PLACED,
    SHABONDI,
    STREAM,
    WORKER,
    ZOOKEEPER,
    KnownClusters,
    read_known,
)
from keelman.gateway.ohara.definitions.node import HOSTNAME, LEGAL_HOSTNAME, NODE, PASSWORD, PORT, SSH_PORT, USER
from keelman.gateway.ohara.nodes.view import AGENT_USER, COVERED, NO_GROUP, node_json
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.hosts import HIDDEN, NodeHost, is_hostname, node_key, own_node
from keelman.gateway.ohara.state.stored import Stored, StoredDocument
from keelman.gateway.ohara.wire.errors import bad_value, illegal_argument
from keelman.gateway.ohara.wire.keys import ObjectKey
from keelman.gateway.ohara.wire.resource import Json, OharaResource
from keelman.gateway.ohara.wire.values import Settings, created
from keelman.gateway.ohara.wire.wording import exists, not_found
from keelman.model.errors import AlreadyExists, Conflict, FailedPrecondition, NotFound

NODE_KIND = "node"
ALIVE = (ZOOKEEPER, PLACED)
"""The kinds to read for clusters that can be alive; broker clusters are always read."""
RUNNING_USERS = (ZOOKEEPER, BROKER, WORKER, STREAM, SHABONDI)
LIVE = ("services", "resources")
"""The fields of answers that are not stored."""
STORED_USERS = (ZOOKEEPER, BROKER, WORKER, STREAM)


class OharaNodes(OharaResource):
    """Nodes. `own_host`: this gateway's host; the node with this address or name has the service "configurator"."""

    def __init__(self, control: OharaControl, *, own_host: str, cover_passwords: bool) -> None:
        self._control = control
        self._documents = Stored(control, NODE_KIND)
        self._own_host = own_host
        self._cover = cover_passwords

    def key(self, group: str, name: str) -> ObjectKey:
        """Returns the key of a hostname. Nodes have no group: a given one is ignored."""
        if not is_hostname(name):
            raise bad_value(f'the value "{name}" is not matched to {LEGAL_HOSTNAME}')
        return node_key(name)

    async def list(self) -> Sequence[Json]:
        """Returns all nodes, also those that only their agents registered."""
        directory = await read_known(self._control, *ALIVE)
        return [self._json(host, directory) for host in directory.hosts.all.values()]

    async def get(self, key: ObjectKey) -> Json:
        """Returns one node."""
        directory = await read_known(self._control, *ALIVE)
        return self._json(_found(directory, key), directory)

    async def create(self, settings: Settings) -> Json:
        """Creates a node, with or without its agent. Raises OharaError if it was created already."""
        checked = created(NODE, settings)
        key = node_key(checked[HOSTNAME])
        try:
            await self._create(key, checked)
        except (AlreadyExists, Conflict):
            raise exists(NODE_KIND, key) from None
        return await self.get(key)

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        """Changes a node that no running cluster has, or creates one. Raises Conflict or AlreadyExists if another
        caller was faster."""
        directory = await read_known(self._control, *ALIVE)
        host = directory.hosts.get(key.name)
        if host is None:
            for field in (USER, PASSWORD):
                if field not in settings:
                    raise bad_value(f"{field} field is required")
            await self._create(key, created(NODE, {**settings, HOSTNAME: key.name}))
            return await self.get(key)
        _check_unused(key, directory, RUNNING_USERS, running=True)
        document = host.document
        previous = {PORT: SSH_PORT, USER: AGENT_USER, PASSWORD: COVERED, "tags": dict(host.node.spec.labels)}
        if document is not None:
            previous = {**document.content, PASSWORD: document.secrets.get(PASSWORD, COVERED)}
        if settings.get(PASSWORD) == COVERED:  # as answers may have it
            settings = {name: value for name, value in settings.items() if name != PASSWORD}
        await self._keep(created(NODE, {**previous, **settings, HOSTNAME: host.hostname}), document)
        return await self.get(key)

    async def delete(self, key: ObjectKey) -> None:
        """Deletes a node that no cluster has; a node with its agent is hidden until it is created again."""
        directory = await read_known(self._control)
        host = directory.hosts.get(key.name)
        if host is None:
            return
        _check_unused(key, directory, STORED_USERS, running=False)
        try:
            await self._control.ask(pb.DeleteNodeRequest(name=host.node.name))
        except NotFound:
            pass
        except FailedPrecondition as error:
            if error.reason == "IN_USE":  # a cluster was faster
                kind = WORKER if error.metadata.get("worker_clusters") else BROKER
                raise illegal_argument(f"node:{key.name} is used by {kind} cluster.") from None
            # The node has its agent, or something of it is left.
            await self._documents.put(_document_key(key), {HOSTNAME: host.hostname, HIDDEN: True})
            return
        await self._documents.delete(_document_key(key))

    async def _create(self, key: ObjectKey, settings: Settings) -> None:
        old = await self._documents.get(_document_key(key))
        try:
            await self._control.ask(pb.CreateNodeRequest(name=own_node(key.name)))
        except AlreadyExists:
            if old is not None and HIDDEN not in old.content:
                raise
        await self._keep(settings, old)

    async def _keep(self, settings: Settings, old: StoredDocument | None) -> None:
        content = {name: value for name, value in settings.items() if name not in (PASSWORD, *LIVE)}
        await self._documents.put(
            _document_key(node_key(settings[HOSTNAME])), content, {PASSWORD: settings[PASSWORD]},
            etag="" if old is None else old.etag, new=old is None,
        )  # fmt: skip

    def _json(self, host: NodeHost, directory: KnownClusters) -> Json:
        name = socket.gethostname()
        here = self._own_host in (host.node.status.address, host.node.name) or host.node.name == own_node(name)
        return node_json(host, directory, own=ObjectKey(NO_GROUP, name) if here else None, cover=self._cover)


def _document_key(key: ObjectKey) -> ObjectKey:
    return ObjectKey(key.group, own_node(key.name))


def _found(directory: KnownClusters, key: ObjectKey) -> NodeHost:
    if (host := directory.hosts.get(key.name)) is None:
        raise not_found(NODE_KIND, key)
    return host


def _check_unused(key: ObjectKey, directory: KnownClusters, kinds: Sequence[str], *, running: bool) -> None:
    """Raises OharaError if a cluster of these kinds has the node."""
    for kind in kinds:
        for cluster in directory.of(kind):
            mine = any(own_node(name) == own_node(key.name) for name in cluster.node_names)
            if mine and cluster.made is not None and (cluster.life.state or not running):
                raise illegal_argument(f"node:{key.name} is used by {kind} cluster.")
