"""Legal requests for each operation of the managed Connect API, and illegal ones, member by member of the SDK's model.

For tests that walk all of it.
"""

from __future__ import annotations

import copy
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from support.gateway.managed_connect.bare import MODEL, NOWHERE, Wire
from support.gateway.managed_connect.world import PROPERTIES, UNKNOWN_UUID, arn, connector, plugins, provisioned

CONFIG = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "file": "/in", "topic": "t"}
KINDS = {
    "connectorArn": "connector", "connectorOperationArn": "connector-operation", "customPluginArn": "custom-plugin",
    "workerConfigurationArn": "worker-configuration", "resourceArn": "connector",
}  # fmt: skip
"""The kind of resource that each member's ARN names."""
OWN_MOST = {"kafkaConnectVersion": 64, "bootstrapServers": 4096, "fileKey": 1024, "objectVersion": 1024}
"""Lengths that the model leaves open and that have bounds here."""
Change = Callable[[Wire], Wire]


@dataclass(frozen=True, slots=True)
class Case:
    """A request of an operation that is refused for one member.

    `make` changes a legal request; `member` is the member's name in the message.
    """

    operation: str
    member: str
    what: str
    make: Change
    status: int = 400

    @property
    def name(self) -> str:
        """The id of a test."""
        return f"{self.operation}-{self.member}-{self.what}"


def unknown_arn(kind: str, account: str | None = None) -> str:
    """A well-formed ARN of a resource that does not exist."""
    value = {} if account is None else {"account": account}
    new_arn = arn(kind, "none", unique=UNKNOWN_UUID, **value)
    return f"{new_arn}/{UNKNOWN_UUID}" if kind == "connector-operation" else new_arn


def legal(operation: str, there: Mapping[str, str]) -> dict[str, Any]:
    """Parameters of an operation with every member; each is legal by itself.

    `there`: ARNs of existing resources, by member; the version of the connector as "currentVersion".
    """
    arns = {member: there.get(member, unknown_arn(kind)) for member, kind in KINDS.items()}
    log = {
        "cloudWatchLogs": {"enabled": False, "logGroup": "g"}, "firehose": {"enabled": False, "deliveryStream": "s"},
        "s3": {"enabled": False, "bucket": "bucket", "prefix": "p"},
    }  # fmt: skip
    revision = {"workerConfigurationArn": arns["workerConfigurationArn"], "revision": 1}
    bodies: dict[str, dict[str, Any]] = {
        "CreateConnector": connector(
            "legal", NOWHERE, CONFIG, connectorDescription="d", tags={"a": "b"}, networkType="IPV4",
            logDelivery={"workerLogDelivery": log}, workerConfiguration=revision, capacity=autoscaled(),
        ),
        "UpdateConnector": {"capacity": autoscaled(), "plugins": plugins(), "workerConfiguration": revision,
                            "skipHealthValidation": True},
        "CreateCustomPlugin": {
            "name": "legal", "contentType": "ZIP", "description": "d", "tags": {"a": "b"},
            "location": {
                "s3Location": {"bucketArn": "arn:aws:s3:::bucket", "fileKey": "x.zip", "objectVersion": "1"}
            },
        },
        "CreateWorkerConfiguration": {
            "name": "legal", "description": "d", "propertiesFileContent": b64encode(PROPERTIES).decode(),
            "tags": {"a": "b"},
        },
        "TagResource": {"tags": {"a": "b"}},
        "UntagResource": {"tagKeys": ["a"]},
    }  # fmt: skip
    body = bodies.get(operation, {})
    shape = MODEL.operation_model(operation).input_shape
    for member in shape.members:
        if member in arns and member not in body:
            body[member] = arns[member]
    if "currentVersion" in shape.members:
        body["currentVersion"] = there.get("currentVersion", "K")
    return body


def autoscaled() -> dict[str, Any]:
    """The member `capacity`, whole."""
    return {
        "autoScaling": {
            "minWorkerCount": 1, "maxWorkerCount": 2, "mcuCount": 1, "maxAutoscalingTaskCount": 4,
            "scaleInPolicy": {"cpuUtilizationPercentage": 20}, "scaleOutPolicy": {"cpuUtilizationPercentage": 80},
        }
    }  # fmt: skip


def bodies_of(operation: str) -> list[Case]:
    """Illegal values of each member of the operation's body, in turn."""
    shape = MODEL.operation_model(operation).input_shape
    within = {name: member for name, member in shape.members.items() if "location" not in member.serialization}
    cases: list[Case] = []
    for name, value in within.items():
        cases += _of_member(operation, (name,), value, required=name in shape.required_members)
    if within:
        cases.append(Case(operation, "body", "no object", lambda wire: _with_body(wire, ["text"])))
    return cases


def _of_member(operation: str, path: tuple[str, ...], shape: Any, *, required: bool) -> Iterator[Case]:
    member = ".".join(path)

    def case(what: str, value: Any, at: tuple[str, ...] = path, named: str = member) -> Case:
        return Case(operation, named, what, lambda wire: _with_body(wire, _set(wire.body, at, value)))

    if required:
        yield Case(operation, member, "missing", lambda wire: _with_body(wire, _set(wire.body, path, _NONE)))
        yield case("null", None)
    for what, value in _wrong(path[-1], shape):
        yield case(what, value)
    if shape.type_name == "structure":
        for name, item in shape.members.items():
            if path[-1] == "capacity" and name == "provisionedCapacity":
                yield from _of_provisioned(operation, path, item)
                continue
            yield from _of_member(operation, (*path, name), item, required=name in shape.required_members)
    elif shape.type_name == "list" and shape.member.type_name == "structure":
        (name, item), *_ = shape.member.members.items()
        place = f"{member}[0]"
        yield case("item of another type", ["text"], named=place)
        yield case("item without its member", [{}], named=f"{place}.{name}")
        for inner, kind in item.members.items():
            base = dict(plugins()[0]["customPlugin"])
            rest = {key: value for key, value in base.items() if key != inner}
            yield case("missing", [{name: rest}], named=f"{place}.{name}.{inner}")
            for what, value in _wrong(inner, kind):
                yield case(what, [{name: base | {inner: value}}], named=f"{place}.{name}.{inner}")
    elif shape.type_name == "list":
        yield case("item of another type", [7], named=f"{member}[0]")
    elif shape.type_name == "map":
        yield case("value of another type", {"a": 7}, named=f"{member}.a")
        yield case("key empty", {"": "x"}, named=f"{member}.key")
        if most := shape.key.metadata.get("max"):
            yield case("key too long", {"k" * (most + 1): "x"}, named=f"{member}.key")
        if most := shape.value.metadata.get("max"):
            yield case("value too long", {"a": "x" * (most + 1)}, named=f"{member}.a")


def _of_provisioned(operation: str, path: tuple[str, ...], shape: Any) -> Iterator[Case]:
    """The other kind of capacity, which is set alone."""
    base = provisioned()["provisionedCapacity"]
    whole = ".".join((*path, "provisionedCapacity"))
    text = {"provisionedCapacity": "text"}
    yield Case(operation, whole, "another type", lambda wire: _with_body(wire, _set(wire.body, path, text)))
    for name, item in shape.members.items():
        member = ".".join((*path, "provisionedCapacity", name))
        rest = {key: value for key, value in base.items() if key != name}
        for what, value in (("missing", rest), *((w, base | {name: v}) for w, v in _wrong(name, item))):
            fields = {"provisionedCapacity": value}
            yield Case(
                operation, member, what, lambda wire, fields=fields: _with_body(wire, _set(wire.body, path, fields))
            )  # fmt: skip


def _wrong(name: str, shape: Any) -> Iterator[tuple[str, Any]]:
    """Values that are illegal for every member of this shape."""
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    match shape.type_name:
        case "string":
            yield "another type", 7
            yield "NUL", "a\0b"
            if shape.enum:
                yield "no value of the enumeration", "NONSENSE"
            elif name.endswith("Arn"):
                yield "no ARN", "arn:nonsense"
            if least:
                yield "empty", ""
            if most := most or OWN_MOST.get(name):
                yield "too long", "x" * (most + 1)
        case "integer" | "long":
            yield "a text", "1"
            yield "a fraction", 1.5
            yield "a truth", True
            yield "too small", (least or 1) - 1
            yield "too large", (1 << 63) if shape.type_name == "long" else (most or 1 << 31) + 1
            if name == "mcuCount":
                yield "no count of MCUs", 3
        case "boolean":
            yield "a text", "true"
            yield "a number", 1
        case "list":
            yield "another type", {"a": "b"}
            if name == "plugins":
                yield "none", []
                yield "two", plugins() * 2
        case "map":
            yield "another type", ["a"]
            if most:
                yield "too many", {f"k{number}": "v" for number in range(most + 1)}
        case "structure":
            yield "another type", "text"


_NONE = object()


def _with_body(wire: Wire, body: Any) -> Wire:
    return Wire(wire.method, wire.path, wire.query, body)


def _set(body: Any, path: tuple[str, ...], value: Any) -> Any:
    new_body = copy.deepcopy(body)
    place = new_body
    for name in path[:-1]:
        place = place[name]
    if value is _NONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return new_body


def queries_of(operation: str) -> list[Case]:
    """Illegal values of each parameter of the operation's query."""
    shape = MODEL.operation_model(operation).input_shape
    named = {n: member for n, member in shape.members.items() if member.serialization.get("location") == "querystring"}
    wrong: dict[str, list[tuple[str, Any]]] = {
        "maxResults": [("too small", 0), ("too large", 101), ("a text", "x"), ("a fraction", "1.5"), ("empty", " ")],
        "nextToken": [("foreign", "bm8gdG9rZW4="), ("no base64", "%%%"), ("a long one", "A" * 4096)],
        "onlyFailedTasks": [("a text", "maybe"), ("a number", "1")],
        "currentVersion": [("stale", "KSTALE")],
        "tagKeys": [("empty", [""]), ("too long", ["k" * 129]), ("too many", [f"k{n}" for n in range(201)])],
    }
    cases: list[Case] = []
    for name, item in named.items():
        for what, value in wrong.get(name, ()):
            cases.append(Case(operation, name, what, _query(name, value)))
        if name in shape.required_members:
            cases.append(Case(operation, name, "missing", _query(name, _NONE)))
        if item.type_name != "list":
            cases.append(Case(operation, name, "twice", _query(name, ["1", "1"])))
    return cases


def _query(name: str, value: Any) -> Change:
    def change(wire: Wire) -> Wire:
        query = {key: value for key, value in wire.query.items() if key != name}
        return Wire(wire.method, wire.path, query if value is _NONE else {**query, name: value}, wire.body)

    return change


def arns_of(operation: str) -> list[Case]:
    """Illegal values of the ARN in the operation's path."""
    shape = MODEL.operation_model(operation).input_shape
    cases: list[Case] = []
    for name, member in shape.members.items():
        if member.serialization.get("location") != "uri":
            continue
        kind = KINDS[name]
        other = "custom-plugin" if kind != "custom-plugin" else "connector"
        wrong_kind = unknown_arn("connector-operation") if name == "resourceArn" else unknown_arn(other)
        texts = {
            "malformed": ("arn:nonsense", 400), "of another service": ("arn:aws:s3:::bucket", 400),
            "of another kind": (wrong_kind, 400), "with a part": (unknown_arn(kind) + "/x/y", 400),
            "unknown": (unknown_arn(kind), 404), "of another account": (unknown_arn(kind, "111122223333"), 404),
        }  # fmt: skip
        for what, (text, status) in texts.items():
            cases.append(Case(operation, name, what, _path(operation, name, text), status))
    return cases


def _path(operation: str, name: str, text: str) -> Change:
    def change(wire: Wire) -> Wire:
        minimal = Wire.of(operation, {**legal(operation, {}), name: text})
        return Wire(wire.method, minimal.path, wire.query, wire.body)

    return change


def all_cases() -> list[Case]:
    """All cases of the walk."""
    return [
        case
        for operation in MODEL.operation_names
        for case in (*bodies_of(operation), *queries_of(operation), *arns_of(operation))
    ]
