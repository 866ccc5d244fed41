"""The kinds of objects: for each the schemas of requests and answers, and its verbs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keelman.gateway.ohara.definitions.broker import BROKER
from keelman.gateway.ohara.definitions.broker import SENT_ONLY as SENT_TO_BROKERS
from keelman.gateway.ohara.definitions.connector import CONNECTOR
from keelman.gateway.ohara.definitions.node import NODE
from keelman.gateway.ohara.definitions.pipeline import PIPELINE
from keelman.gateway.ohara.definitions.shabondi import SHABONDI
from keelman.gateway.ohara.definitions.stream import STREAM
from keelman.gateway.ohara.definitions.topic import TOPIC
from keelman.gateway.ohara.definitions.volume import VOLUME
from keelman.gateway.ohara.definitions.worker import SENT_ONLY, WORKER
from keelman.gateway.ohara.definitions.zookeeper import ZOOKEEPER
from keelman.gateway.ohara.documents.objects import Objects
from keelman.gateway.ohara.openapi.schemas import (
    COUNT,
    FLAG,
    KEY,
    MILLISECONDS,
    NUMBER,
    TAGS,
    TEXT,
    Schema,
    answered_object,
    answered_setting,
    array,
    one_of,
    record,
    ref,
    sent_object,
)
from keelman.gateway.ohara.wire.setting_def import Definitions

START_STOP = ("start", "stop")
CLUSTER_STATE = one_of("PENDING", "RUNNING", "FAILED", "UNKNOWN")
CONNECTOR_STATE = one_of("UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "DESTROYED")
MODIFIED: Mapping[str, Schema] = {"lastModified": MILLISECONDS}
CLUSTER_LIVE: Mapping[str, Schema] = {"aliveNodes": array(TEXT), **MODIFIED}
CLUSTER_OPTIONAL: Mapping[str, Schema] = {"state": CLUSTER_STATE, "error": TEXT}


@dataclass(frozen=True, slots=True)
class ApiKind:
    """One kind of object, at /v0/`path`. `has_nodes`: nodes can be added to an object and removed from it."""

    path: str
    schema: str
    sent: Schema
    changed: Schema
    answered: Schema
    verbs: tuple[str, ...] = ()
    has_nodes: bool = False
    variable: str = "name"
    queries: Mapping[str, Schema] = field(default_factory=dict)
    """The query parameters of its verbs, beside the group."""


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
    variable: str = "name",
) -> ApiKind:
    """Returns the kind of a table; `extra` are settings that may be sent, that no form shows, and not
    every answer has."""
    return ApiKind(
        path,
        schema,
        sent_object((*definitions, *extra), required=True),
        sent_object((*definitions, *extra), required=False),
        answered_object(
            definitions, live, {**optional, **{setting.key: answered_setting(setting) for setting in extra}}
        ),
        verbs,
        has_nodes,
        variable,
        queries={"force": {"type": "string"}} if "stop" in verbs else {},
    )


def _cluster(
    path: str, schema: str, definitions: Definitions, extra: Definitions = (), live: Mapping[str, Schema] | None = None
) -> ApiKind:
    return _kind(
        path, schema, definitions, {**CLUSTER_LIVE, **(live or {})}, CLUSTER_OPTIONAL, verbs=START_STOP,
        has_nodes=True, extra=extra,
    )  # fmt: skip


NODE_LIVE: Mapping[str, Schema] = {
    "services": array(record({"name": TEXT, "clusterKeys": array(KEY)})),
    "state": one_of("AVAILABLE", "UNAVAILABLE"),
    "resources": array(
        record({"name": TEXT, "value": NUMBER, "unit": TEXT}, {"used": {**NUMBER, "minimum": 0, "maximum": 1}})
    ),
    **MODIFIED,
}
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
METRICS: Mapping[str, Schema] = {"nodeMetrics": ref("NodeMetrics")}
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
_ABSTRACT = record(
    {"group": TEXT, "name": TEXT, "kind": TEXT, "tags": TAGS, **METRICS, **MODIFIED},
    {"className": TEXT, "state": TEXT, "error": TEXT},
)
CONNECTOR_LIVE: Mapping[str, Schema] = {"aliveNodes": array(TEXT), "tasksStatus": array(_TASK), **METRICS, **MODIFIED}
STATE: Mapping[str, Schema] = {"state": one_of("RUNNING")}

KINDS = (
    _cluster("workers", "Worker", WORKER, SENT_ONLY),
    _cluster("brokers", "Broker", BROKER, SENT_TO_BROKERS),
    _cluster("zookeepers", "Zookeeper", ZOOKEEPER),
    _cluster("streams", "Stream", STREAM, live=METRICS),
    _cluster("shabondis", "Shabondi", SHABONDI, live=METRICS),
    _kind("nodes", "Node", NODE, NODE_LIVE, {"error": TEXT}, variable="hostname"),
    _kind(
        "connectors", "Connector", CONNECTOR, CONNECTOR_LIVE, {"state": CONNECTOR_STATE, "error": TEXT},
        verbs=(*START_STOP, "pause", "resume"),
    ),
    _kind(
        "topics", "Topic", TOPIC, {"partitionInfos": array(_PARTITION), **METRICS, **MODIFIED},
        {**STATE, "error": TEXT}, verbs=START_STOP,
    ),
    _kind("objects", "Object", Objects.DEFINITIONS, MODIFIED, {}),
    _kind("volumes", "Volume", VOLUME, MODIFIED, STATE, verbs=START_STOP),
    _kind(
        "pipelines", "Pipeline", PIPELINE, {"objects": array(_ABSTRACT), "jarKeys": array(KEY), **MODIFIED}, {},
        verbs=("refresh",),
    ),
)  # fmt: skip
