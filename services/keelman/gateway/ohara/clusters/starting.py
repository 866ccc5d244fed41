"""Checks a cluster of any kind before a start, stop or delete, in Ohara's order and with Ohara's errors. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from keelman.api.node.v1.node_pb2 import NODE_STATE_ONLINE
from keelman.gateway.ohara.clusters.known_clusters import (
    BROKER,
    SHABONDI,
    STREAM,
    WORKER,
    ZOOKEEPER,
    KnownClusters,
    OharaCluster,
)
from keelman.gateway.ohara.clusters.ports import Holder, check_ports, in_use
from keelman.gateway.ohara.clusters.processes import PENDING, RUNNING, is_begun, is_wanted
from keelman.gateway.ohara.definitions.common import VERSION
from keelman.gateway.ohara.wire.errors import OharaError, bad_value, error_of, illegal_argument, illegal_state
from keelman.gateway.ohara.wire.keys import ObjectKey
from keelman.gateway.ohara.wire.wording import JAVA_NAMES, must_be_stopped
from keelman.model.errors import FailedPrecondition

IMAGES = {WORKER: "connect-worker", BROKER: "broker", ZOOKEEPER: "zookeeper", STREAM: "stream", SHABONDI: "shabondi"}
"""The beginning of the last part of an image's name, by kind: any version is legal."""
MIN_PORT, MAX_PORT = 20_000, 60_000
_NOUNS = {"broker_cluster": BROKER, "worker_cluster": WORKER}


def default_image(kind: str) -> str:
    """Returns the image of a cluster that names none."""
    return f"oharastream/{IMAGES[kind]}:{VERSION}"


def check_start(cluster: OharaCluster, ports: frozenset[int], directory: KnownClusters) -> None:
    """Raises OharaError for nodes that do not exist or do not have the image, and for ports of other clusters. `ports`:
    those that the cluster's user gave it, since the others are chosen anew."""
    if not cluster.node_names:
        raise bad_value("node names can't be empty")
    directory.hosts.check(cluster.node_names)
    check_image(cluster.kind, cluster.node_names, str(cluster.settings["imageName"]), directory)
    check_ports(Holder(cluster.kind, cluster.key, ports), directory.holders())


def check_image(kind: str, hostnames: Iterable[str], image: str, directory: KnownClusters) -> None:
    """Raises OharaError for a node without its agent, and for an image of another kind."""
    for name in hostnames:
        host = directory.hosts.get(name)
        is_there = host is not None and host.node.status.state == NODE_STATE_ONLINE
        images = [default_image(image_kind) for image_kind in IMAGES] if is_there else []
        if not images or not image.rpartition("/")[2].startswith(f"{IMAGES[kind]}:"):
            raise illegal_argument(f"{name} does not have image:{image}. It has images:{','.join(images) or 'N/A'}")


def check_not_running(cluster: OharaCluster) -> None:
    """Raises OharaError for a running cluster; the first check of a delete."""
    if cluster.life.state == RUNNING:
        raise must_be_stopped(cluster.kind, cluster.key)


def check_begun(cluster: OharaCluster, *, force: bool) -> None:
    """Raises OharaError for a cluster that is starting and has started no process yet: it cannot be stopped, except by
    force or when its start is stuck."""
    status = cluster.made.status
    under_way = cluster.life.state == PENDING and is_wanted(status.state) and not status.stuck
    if under_way and not force and not is_begun(cluster.processes):
        raise illegal_state(f"KeyKind({cluster.key},{cluster.kind}) is starting")


def check_stopped(cluster: OharaCluster) -> None:
    """Raises OharaError for a cluster that has processes; the last check of a delete."""
    if cluster.life.state:
        name = JAVA_NAMES[cluster.kind].rpartition("$")[2]
        raise illegal_argument(f"You cannot delete a non-stopped {name} :{cluster.key}")


def check_unused(cluster: OharaCluster, users: Iterable[OharaCluster]) -> None:
    """Raises OharaError for a cluster with users, which are all of one kind."""
    if users := list(users):
        raise used(cluster, f"{users[0].kind} cluster", [user.key for user in users])


def used(cluster: OharaCluster, words: str, keys: Iterable[ObjectKey]) -> OharaError:
    """Returns the error for a cluster that cannot be deleted, with its users; `words` is the kind of the users."""
    names = ",".join(map(str, keys))
    return illegal_argument(
        f"you can't remove {cluster.kind} cluster:{cluster.key} since it is used by {words}:{names}"
    )  # fmt: skip


def free_port(directory: KnownClusters, taken: Iterable[int] = ()) -> int:
    """Returns a random port that no cluster has, running or not."""
    held = {*taken}.union(*(cluster.ports for cluster in directory.clusters.values()))
    while (port := MIN_PORT + secrets.randbelow(MAX_PORT - MIN_PORT)) in held:
        pass
    return port


def worded(error: FailedPrecondition, directory: KnownClusters, own: str, key: ObjectKey) -> OharaError:
    """Returns an error of the state service in Ohara's words. `own`: the own name of the broker cluster of this key."""
    facts = error.metadata
    match error.reason:
        case "PORT_IN_USE":
            holder = _holder(directory, facts["kind"], facts["name"])
            return illegal_argument(in_use([int(facts["port"])], holder.holder.words if holder else facts["name"]))
        case "IN_USE":
            users = [_holder(directory, "worker_cluster", name) for name in facts["worker_clusters"].split(", ")]
            cluster = directory.get(BROKER, key)
            if cluster is not None and all(users):
                return used(cluster, "worker cluster", [user.key for user in users if user is not None])
    plain_error = error_of(error)
    return OharaError(
        plain_error.status, plain_error.code, plain_error.message.replace(repr(own), str(key)).replace(own, str(key))
    )


def _holder(directory: KnownClusters, noun: str, name: str) -> OharaCluster | None:
    """Returns the cluster with this name in the state service; None if it is not shown."""
    matches = (
        cluster
        for cluster in directory.of(_NOUNS.get(noun, ""))
        if cluster.made is not None and cluster.made.name == name
    )
    return next(matches, None)
