"""Calls without a resource: inspections, validation, logs, files and others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from keelman.gateway.ohara.openapi.schemas import (
    COUNT,
    FLAG,
    KEY,
    PORT,
    SHORT_KEY,
    TAGS,
    TEXT,
    VALUE,
    WORD,
    Schema,
    array,
    one_of,
    record,
    ref,
)

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One call, below /v0/ unless its path begins with a slash. `answer`: the schema of its 200. `query`: its
    parameters, of which some are `required`."""

    method: str
    path: str
    summary: str
    answer: Schema | None = None
    sent: Schema | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    status: int = 200
    sent_type: str = JSON
    answer_type: str = JSON
    variables: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    filters: bool = False
    errors: Mapping[str, str] = field(default_factory=dict)
    """The call's own error statuses, and their meanings."""

    @property
    def id(self) -> str:
        """An id that is unique among calls."""
        words = [w.strip("{}").replace(".", "") for w in self.path.split("/")]
        return "".join([self.method.lower(), *(w[:1].upper() + w[1:] for w in words)])


DEFINITIONS = array(ref("SettingDefinition"))
SERVICE = record(
    {"imageName": TEXT, "settingDefinitions": DEFINITIONS, "classInfos": array(ref("ClassInfo"))},
    description="The settings of a kind of cluster, and the classes that one has.",
)
CONFIGURATOR = record(
    {
        "versionInfo": record({"version": TEXT, "branch": TEXT, "user": TEXT, "revision": TEXT, "date": TEXT}),
        "mode": one_of("DOCKER", "K8S", "FAKE"),
    },
    {"k8sUrls": {"type": "object"}},
)
MESSAGES = record(
    {
        "messages": array(
            record(
                {"partition": COUNT, "offset": COUNT},
                {"timestamp": COUNT, "sourceClass": TEXT, "sourceKey": KEY, "value": VALUE, "error": TEXT},
            )
        )
    },
    description="Records of a topic, the newest first.",
)
RDB_SENT: Schema = {
    "type": "object",
    "properties": {
        "url": TEXT,
        "user": TEXT,
        "password": TEXT,
        "workerClusterKey": SHORT_KEY,
        "catalogPattern": TEXT,
        "schemaPattern": TEXT,
        "tableName": TEXT,
    },
    "required": ["url", "user", "password", "workerClusterKey"],
}
COLUMN = record({"name": TEXT, "dataType": TEXT, "pk": FLAG})
PLACE: Schema = {"catalogPattern": TEXT, "schemaPattern": TEXT}
RDB = record({"name": TEXT, "tables": array(record({"name": TEXT, "columns": array(COLUMN)}, PLACE))})
VALIDATION = record(
    {
        "errorCount": COUNT,
        "settings": array(
            record(
                {
                    "definition": ref("SettingDefinition"),
                    "value": record({"key": TEXT, "value": {}, "errors": array({"type": "string"})}),
                }
            )
        ),
    }
)
LOGS = record({"clusterKey": KEY, "logs": array(record({"hostname": TEXT, "value": TEXT}))})
CONTAINER = record(
    {
        "nodeName": TEXT,
        "id": TEXT,
        "imageName": TEXT,
        "state": TEXT,
        "kind": TEXT,
        "name": TEXT,
        "size": {"type": "integer"},
        "portMappings": array(record({"hostIp": TEXT, "hostPort": PORT, "containerPort": PORT})),
        "environments": TAGS,
        "hostname": TEXT,
    }
)
CONTAINERS = array(record({"clusterKey": KEY, "clusterType": TEXT, "containers": array(CONTAINER)}))
UPLOAD: Schema = {
    "type": "object",
    "properties": {"file": {"type": "string", "format": "binary"}, "group": TEXT, "tags": TEXT},
    "required": ["file"],
}
FORM = "multipart/form-data"
GROUP: Mapping[str, Schema] = {"group": {**WORD, "default": "default"}}
SINCE: Mapping[str, Schema] = {**GROUP, "sinceSeconds": {"type": "integer", "minimum": 1}}
CLUSTERS = ("zookeepers", "brokers", "workers", "streams", "shabondis")
FILE_WORDS: Mapping[str, Schema] = {"name": TEXT, "group": TEXT}


def _inspections() -> Iterator[ApiCall]:
    yield ApiCall("GET", "inspect/configurator", "What serves this API", CONFIGURATOR)
    for kind in (*CLUSTERS, *(word.removesuffix("s") for word in CLUSTERS)):
        yield ApiCall("GET", f"inspect/{kind}", f"Settings of {kind}", SERVICE)
        yield ApiCall(
            "GET", f"inspect/{kind}/{{name}}", f"Settings of {kind}, and classes of one", SERVICE, query=GROUP
        )
    for word in ("connectors", "connector"):
        yield ApiCall("GET", f"inspect/{word}/{{name}}", "The class of a connector", SERVICE, query=GROUP)
    for word in ("files", "file"):
        about = "Classes of a file, which is not kept"
        yield ApiCall("POST", f"inspect/{word}", about, ref("File"), UPLOAD, sent_type=FORM)
    query = {**GROUP, "limit": {"type": "integer", "default": 5}, "timeout": {"type": "integer", "default": 3000}}
    for word in ("topics", "topic"):
        about = "The newest records of a topic that runs"
        yield ApiCall("POST", f"inspect/{word}/{{name}}", about, MESSAGES, query=query)
    yield ApiCall("POST", "inspect/rdb", "Tables of a database, queried by a worker cluster", RDB, RDB_SENT)
    for word in ("connectors", "connector"):
        settings: Schema = {"type": "object"}
        yield ApiCall("PUT", f"validate/{word}", "A connector class's checks of settings", VALIDATION, settings)


def _logs() -> Iterator[ApiCall]:
    for word in ("logs", "log"):
        yield ApiCall("GET", f"{word}/configurator", "The log of what serves this API", LOGS, query=SINCE)
        for kind in CLUSTERS:
            yield ApiCall("GET", f"{word}/{kind}/{{name}}", f"Logs of one of {kind} that runs", LOGS, query=SINCE)
    for word in ("containers", "container"):
        yield ApiCall("GET", f"{word}/{{name}}", "Processes of the clusters of a name", CONTAINERS, query=GROUP)


def _files() -> Iterator[ApiCall]:
    file, group = ref("File"), {"group": {**TEXT, "default": "default"}}
    tags = ref("FileChange")
    yield ApiCall("GET", "files", "Lists files; each query parameter is a filter", array(file), filters=True)
    yield ApiCall("POST", "files", "Uploads a file of at most 50 MiB", file, UPLOAD, sent_type=FORM)
    yield ApiCall("GET", "files/{name}", "One file", file, query=group, variables=FILE_WORDS)
    yield ApiCall("PUT", "files/{name}", "Changes the tags of a file", file, tags, query=group, variables=FILE_WORDS)
    yield ApiCall("DELETE", "files/{name}", "Deletes a file", query=group, status=204, variables=FILE_WORDS)
    for word in ("downloadFile", "downloadFiles"):
        yield ApiCall(
            "GET", f"{word}/{{group}}/{{name}}", "The bytes of a file", {}, answer_type="*/*", variables=FILE_WORDS
        )  # fmt: skip


OTHER_CALLS: tuple[ApiCall, ...] = (
    *_files(),
    *_inspections(),
    *_logs(),
    ApiCall(
        "DELETE", "/_private", "Deletes all objects of groups and kinds, where the gateway's settings allow it",
        sent={"type": "object", "properties": {"groups": array(TEXT), "kinds": array(TEXT)}}, status=204,
        errors={"401": "The gateway's token is missing."},
    ),
    ApiCall("GET", "openapi.json", "This document", {"type": "object"}),
)  # fmt: skip
