"""Translates errors of the state service into Ohara's messages. Pure."""

from __future__ import annotations

from keelman.gateway.ohara.clusters.known_clusters import BROKER, WORKER, KnownClusters
from keelman.gateway.ohara.clusters.ports import in_use
from keelman.gateway.ohara.wire.errors import OharaError, error_of, illegal_argument
from keelman.gateway.ohara.wire.keys import ObjectKey
from keelman.gateway.ohara.wire.wording import exists, must_run
from keelman.model.errors import AlreadyExists, KeelmanError

NO_PORTS: frozenset[int] = frozenset()
_KINDS = {"worker_cluster": WORKER, "broker_cluster": BROKER}
_TOPICS = {
    "config.storage.topic": "configTopicName",
    "offset.storage.topic": "offsetTopicName",
    "status.storage.topic": "statusTopicName",
}


def worded(
    error: KeelmanError, key: ObjectKey, directory: KnownClusters, own_ports: frozenset[int] = NO_PORTS
) -> OharaError:
    """Returns the error for a refused write of the worker cluster `key`. `directory`: the present clusters;
    `own_ports`: the requested ports of the cluster."""
    facts = error.metadata
    match error.reason:
        case "GROUP_IN_USE":
            return illegal_argument(f"group id:{facts['group']} is used by wk cluster:{_name(facts, directory)}")
        case "TOPIC_IN_USE":
            words = _TOPICS.get(facts.get("property", ""), "topic")
            return illegal_argument(f"{words}:{facts['topic']} is used by wk cluster:{_name(facts, directory)}")
        case "PORT_IN_USE":
            return _ports_in_use(int(facts["port"]), (facts["kind"], facts["name"]), own_ports, directory)
        case "ORIGIN_IN_USE":
            return exists(WORKER, key)
        case "BROKERS_STOPPED":
            return must_run(BROKER, [_key(BROKER, facts["broker_cluster"], directory)])
    return exists(WORKER, key) if isinstance(error, AlreadyExists) else error_of(error)


def _name(facts: dict[str, str], directory: KnownClusters) -> str:
    return _key(WORKER, facts["worker_cluster"], directory).name


def _ports_in_use(
    port: int, holder: tuple[str, str], own_ports: frozenset[int], directory: KnownClusters
) -> OharaError:
    """Returns the error with all wanted ports of the first port's holder: a cluster, or the Spark service of a node."""
    noun, name = holder
    kind = _KINDS.get(noun)
    if kind is None:
        return illegal_argument(in_use([port], f"the Spark service of {noun}:{name}"))
    key = _key(kind, name, directory)
    cluster = directory.get(kind, key)
    ports = {port} if cluster is None else {port} | (own_ports & cluster.ports)
    return illegal_argument(in_use(sorted(ports), f"{kind} cluster:{key}"))


def _key(kind: str, name: str, directory: KnownClusters) -> ObjectKey:
    """Returns the key with which a cluster of ours is shown."""
    keys = (cluster.key for cluster in directory.of(kind) if cluster.made is not None and cluster.made.name == name)
    return next(keys, ObjectKey("default", name))
