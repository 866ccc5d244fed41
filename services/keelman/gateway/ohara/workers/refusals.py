"""What the state service refuses, in Ohara's sentences. Pure."""

from __future__ import annotations

from keelman.gateway.ohara.errors import OharaError, error_of, illegal_argument
from keelman.gateway.ohara.keys import ObjectKey
from keelman.gateway.ohara.known import BROKER, WORKER, Known
from keelman.gateway.ohara.ports import in_use
from keelman.gateway.ohara.wording import exists, must_run
from keelman.model.errors import AlreadyExists, KeelmanError

_KINDS = {"worker_cluster": WORKER, "broker_cluster": BROKER}
_TOPICS = {
    "config.storage.topic": "configTopicName",
    "offset.storage.topic": "offsetTopicName",
    "status.storage.topic": "statusTopicName",
}


def worded(error: KeelmanError, key: ObjectKey, known: Known) -> OharaError:
    """The answer for a write of the worker cluster `key` that was refused."""
    facts = error.metadata
    match error.reason:
        case "GROUP_IN_USE":
            return illegal_argument(f"group id:{facts['group']} is used by wk cluster:{_name(facts, known)}")
        case "TOPIC_IN_USE":
            words = _TOPICS.get(facts.get("property", ""), "topic")
            return illegal_argument(f"{words}:{facts['topic']} is used by wk cluster:{_name(facts, known)}")
        case "PORT_IN_USE":
            return illegal_argument(in_use([int(facts["port"])], _holder(facts["kind"], facts["name"], known)))
        case "ORIGIN_IN_USE":
            return exists(WORKER, key)
        case "BROKERS_STOPPED":
            return must_run(BROKER, [_key(BROKER, facts["broker_cluster"], known)])
    return exists(WORKER, key) if isinstance(error, AlreadyExists) else error_of(error)


def _name(facts: dict[str, str], known: Known) -> str:
    return _key(WORKER, facts["worker_cluster"], known).name


def _holder(noun: str, name: str, known: Known) -> str:
    kind = _KINDS.get(noun)
    return f"{noun} {name}" if kind is None else f"{kind} cluster:{_key(kind, name, known)}"


def _key(kind: str, name: str, known: Known) -> ObjectKey:
    """The key under which a cluster of ours is shown."""
    found = (one.key for one in known.of(kind) if one.made is not None and one.made.name == name)
    return next(found, ObjectKey("default", name))
