"""Translates errors of the state service into Ohara's messages. Pure."""

from __future__ import annotations

from keelman.gateway.ohara.clusters.known import BROKER, WORKER, Known
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


def worded(error: KeelmanError, key: ObjectKey, known: Known, wanted: frozenset[int] = NO_PORTS) -> OharaError:
    """Returns the error for a refused write of the worker cluster `key`. `known`: the present clusters; `wanted`: the
    requested ports of the cluster."""
    facts = error.metadata
    match error.reason:
        case "GROUP_IN_USE":
            return illegal_argument(f"group id:{facts['group']} is used by wk cluster:{_name(facts, known)}")
        case "TOPIC_IN_USE":
            words = _TOPICS.get(facts.get("property", ""), "topic")
            return illegal_argument(f"{words}:{facts['topic']} is used by wk cluster:{_name(facts, known)}")
        case "PORT_IN_USE":
            return _ports_in_use(int(facts["port"]), (facts["kind"], facts["name"]), wanted, known)
        case "ORIGIN_IN_USE":
            return exists(WORKER, key)
        case "BROKERS_STOPPED":
            return must_run(BROKER, [_key(BROKER, facts["broker_cluster"], known)])
    return exists(WORKER, key) if isinstance(error, AlreadyExists) else error_of(error)


def _name(facts: dict[str, str], known: Known) -> str:
    return _key(WORKER, facts["worker_cluster"], known).name


def _ports_in_use(port: int, holder: tuple[str, str], wanted: frozenset[int], known: Known) -> OharaError:
    """Returns the error with all wanted ports of the first port's holder: a cluster, or the Spark service of a node."""
    noun, name = holder
    kind = _KINDS.get(noun)
    if kind is None:
        return illegal_argument(in_use([port], f"the Spark service of {noun}:{name}"))
    key = _key(kind, name, known)
    cluster = known.get(kind, key)
    ports = {port} if cluster is None else {port} | (wanted & cluster.ports)
    return illegal_argument(in_use(sorted(ports), f"{kind} cluster:{key}"))


def _key(kind: str, name: str, known: Known) -> ObjectKey:
    """Returns the key with which a cluster of ours is shown."""
    found = (one.key for one in known.of(kind) if one.made is not None and one.made.name == name)
    return next(found, ObjectKey("default", name))
