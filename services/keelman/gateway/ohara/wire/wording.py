"""Ohara's messages about objects that are missing, exist already, or are not in the required state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from keelman.gateway.ohara.wire.errors import OharaError, data_check, illegal_state, no_such
from keelman.gateway.ohara.wire.keys import ObjectKey

T = TypeVar("T")
JAVA = "oharastream.ohara.client.configurator."
JAVA_NAMES = {
    "broker": "BrokerApi$BrokerClusterInfo",
    "connector": "ConnectorApi$ConnectorInfo",
    "file": "FileInfoApi$FileInfo",
    "node": "NodeApi$Node",
    "object": "ObjectApi$ObjectInfo",
    "pipeline": "PipelineApi$Pipeline",
    "shabondi": "ShabondiApi$ShabondiClusterInfo",
    "stream": "StreamApi$StreamClusterInfo",
    "topic": "TopicApi$TopicInfo",
    "volume": "VolumeApi$Volume",
    "worker": "WorkerApi$WorkerClusterInfo",
    "zookeeper": "ZookeeperApi$ZookeeperClusterInfo",
}
"""The class that Ohara has for each kind of object."""


def not_found(kind: str, key: ObjectKey) -> OharaError:
    """Returns the error for a requested object that does not exist."""
    return no_such(f"{key} doesn't exist in {JAVA}{JAVA_NAMES[kind]}")


def exists(kind: str, key: ObjectKey) -> OharaError:
    """Returns the error for a new object that exists already. The braces are Ohara's."""
    return illegal_state(f"({key.group}, {key.name}}} already exists on {JAVA}{JAVA_NAMES[kind]}")


def not_stored(kind: str, keys: Iterable[ObjectKey]) -> OharaError:
    """Returns the error for objects that another object names and that do not exist."""
    return data_check(f"type:{kind} {','.join(f'{key} does not exist' for key in keys)} ")


def checked_running(kind: str, key: ObjectKey, resource: T | None, runs: Callable[[T], bool]) -> T:
    """Returns the object found under a key. Raises OharaError if it does not exist or does not run."""
    if resource is None:
        raise not_stored(kind, [key])
    if not runs(resource):
        raise must_run(kind, [key])
    return resource


def must_run(kind: str, keys: Iterable[ObjectKey]) -> OharaError:
    """Returns the error for objects that must run for the request."""
    return data_check(f"type:{kind}  {','.join(f'{key} MUST be running' for key in keys)}")


def must_be_stopped(kind: str, key: ObjectKey) -> OharaError:
    """Returns the error for an object that must be stopped for the request."""
    return data_check(f"type:{kind}  {key} MUST be stopped")
