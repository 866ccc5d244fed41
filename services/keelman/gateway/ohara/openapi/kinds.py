"""The kinds of objects: for each what is sent, what is answered and which verbs it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keelman.gateway.ohara.definitions.broker import BROKER, SENT_ONLY
from keelman.gateway.ohara.definitions.setting import Definitions
from keelman.gateway.ohara.definitions.volume import VOLUME
from keelman.gateway.ohara.definitions.worker import WORKER
from keelman.gateway.ohara.definitions.zookeeper import ZOOKEEPER
from keelman.gateway.ohara.openapi.schemas import (
    COUNT,
    FLAG,
    HOSTNAME,
    KEY,
    MILLISECONDS,
    NUMBER,
    PORT,
    TAGS,
    TEXT,
    Schema,
    answered_object,
    array,
    one_of,
    record,
    ref,
    sent_object,
)

START_STOP = ("start", "stop")
CLUSTER_STATE = one_of("PENDING", "RUNNING", "FAILED", "UNKNOWN")
CONNECTOR_STATE = one_of("UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "DESTROYED")
MODIFIED: Mapping[str, Schema] = {"lastModified": MILLISECONDS}
CLUSTER_LIVE: Mapping[str, Schema] = {"aliveNodes": array(TEXT), **MODIFIED}
CLUSTER_OPTIONAL: Mapping[str, Schema] = {"state": CLUSTER_STATE, "error": TEXT}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object, at /v0/`path`. `has_nodes`: nodes are added to one and taken from it."""

    path: str
    schema: str
    sent: Schema
    changed: Schema
    answered: Schema
    verbs: tuple[str, ...] = ()
    has_nodes: bool = False
    variable: str = "name"
    queries: Mapping[str, Schema] = field(default_factory=dict)
    """Of its verbs, beside the group."""


def _kind(
    path: str,
    schema: str,
    definitions: Definitions,
    live: Mapping[str, Schema],
    optional: Mapping[str, Schema],
    *,
    verbs: tuple[str, ...] = (),
    has_nodes: bool = False,
    extra: Definitions = (),
) -> Kind:
    """A kind of a table; `extra` are settings without a default that may be sent and are in no form."""
    return Kind(
        path,
        schema,
        sent_object((*definitions, *extra), required=True),
        sent_object((*definitions, *extra), required=False),
        answered_object((*definitions, *extra), live, optional),
        verbs,
        has_nodes,
        queries={"force": {"type": "string"}} if "stop" in verbs else {},
    )


def _cluster(path: str, schema: str, definitions: Definitions, extra: Definitions = ()) -> Kind:
    return _kind(
        path, schema, definitions, CLUSTER_LIVE, CLUSTER_OPTIONAL, verbs=START_STOP, has_nodes=True, extra=extra
    )


NODE_SENT: Mapping[str, Schema] = {
    "hostname": HOSTNAME,
    "port": {**PORT, "default": 22},
    "user": TEXT,
    "password": TEXT,
    "tags": {"type": "object"},
}
NODE = Kind(
    "nodes",
    "Node",
    {"type": "object", "properties": dict(NODE_SENT), "required": ["hostname", "user", "password"]},
    {"type": "object", "properties": {k: v for k, v in NODE_SENT.items() if k != "hostname"}},
    record(
        {
            "hostname": HOSTNAME,
            "port": PORT,
            "user": TEXT,
            "password": TEXT,
            "services": array(record({"name": TEXT, "clusterKeys": array(KEY)})),
            "state": one_of("AVAILABLE", "UNAVAILABLE"),
            "lastModified": MILLISECONDS,
            "resources": array(
                record({"name": TEXT, "value": NUMBER, "unit": TEXT}, {"used": {**NUMBER, "minimum": 0, "maximum": 1}})
            ),
            "tags": TAGS,
        },
        {"error": TEXT},
        additionalProperties=ref("Value"),
    ),
    variable="hostname",
)
FILE = record(
    {
        "group": TEXT,
        "name": TEXT,
        "size": COUNT,
        "lastModified": MILLISECONDS,
        "classInfos": array(ref("ClassInfo")),
        "tags": TAGS,
    },
    {"url": TEXT},
    description="A file; `url` is where it is downloaded.",
)
_TASK = record({"state": CONNECTOR_STATE, "nodeName": TEXT, "coordinator": FLAG}, {"error": TEXT})
_REPLICA = record({"id": {"type": "integer"}, "host": TEXT, "port": {"type": "integer"}})
_PARTITION = record(
    {
        "id": COUNT,
        "replicas": array(_REPLICA),
        "inSyncReplicas": array(_REPLICA),
        "beginningOffset": {"type": "integer"},
        "endOffset": {"type": "integer"},
    },
    {"leader": _REPLICA},
)

KINDS = (
    _cluster("workers", "Worker", WORKER),
    _cluster("brokers", "Broker", BROKER, SENT_ONLY),
    _cluster("zookeepers", "Zookeeper", ZOOKEEPER),
    _kind("volumes", "Volume", VOLUME, MODIFIED, CLUSTER_OPTIONAL, verbs=START_STOP),
    NODE,
)
