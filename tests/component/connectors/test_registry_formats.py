"""Protobuf and JSON Schema with a real schema registry: through source and sink tasks, and as others write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
from confluent_kafka import Producer
from google.protobuf.descriptor_pb2 import FileOptions

from keelman.connect.converters.configured import converter_for
from keelman.connect.converters.converter import Converter
from keelman.connect.protobuf.names import KNOWN_FILES
from keelman.connect.records import Column
from keelman.connect.registry.interface import RegistryError, header
from keelman.connect.schema import STRING, Field, Schema, Struct
from keelman.engine.records.registries import open_registry
from support.copying.harness import Run, ticket
from support.kafka.topics import create_topic, messages
from support.servers.registry import RegistryProcess
from support.waiting import until

pytestmark = pytest.mark.component

CLASSES = {
    "PROTOBUF": "io.confluent.connect.protobuf.ProtobufConverter",
    "JSON": "io.confluent.connect.json.JsonSchemaConverter",
}
HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
TEXTS = {
    "PROTOBUF": 'syntax = "proto3";\n\nmessage ConnectDefault1 {\n  string line = 1;\n}\n',
    "JSON": '{"type":"object","properties":{"line":{"type":"string","connect.index":0}}}',
}


def keys(kind: str, url: str, **more: str) -> dict[str, str]:
    own = {"value.converter": CLASSES[kind], "value.converter.schema.registry.url": url}
    return {**own, **{f"value.converter.{key}": value for key, value in more.items()}}


def converter(kind: str, url: str, topic: str, **more: str) -> Converter:
    return converter_for("value", keys(kind, url, **more), {}, open_registry).of_topic(topic)


def ask(registry: RegistryProcess, method: str, path: str, body: Any = None) -> Any:
    return httpx.request(method, registry.url + path, json=body, timeout=300, trust_env=False, verify=False).json()


def line_in(kind: str, payload: bytes) -> str:
    """The line as another reader sees it: a message whose first field is a text, or JSON that its schema allows."""
    if kind == "JSON":
        tree = json.loads(payload)
        assert jsonschema_rs.Draft7Validator(json.loads(TEXTS[kind])).is_valid(tree)
        return str(tree["line"])
    assert payload[:1] == b"\0", "the first message of the schema"
    return FileOptions.FromString(payload[1:]).java_package  # a text, too, and its number is 1


@pytest.mark.parametrize("kind", list(CLASSES))
def test_lines_go_through_kafka(  # noqa: PLR0917  fixtures
    kind: str, bootstrap: str, registry: RegistryProcess, name: str, runs: Callable[..., Run], tmp_path: Path
) -> None:
    topic = f"{name}-{kind.lower()}"
    create_topic(bootstrap, topic, 1)
    path, out = tmp_path / "given.txt", tmp_path / "out.txt"
    path.write_text("one\ntwö\n")
    hoist = {"transforms": "h", "transforms.h.type": HOIST, "transforms.h.field": "line"}
    source = {"name": f"{topic}-in", "connector.class": "FileStreamSource", "file": str(path), "topic": topic}
    sink = {"name": f"{topic}-out", "connector.class": "FileStreamSink", "file": str(out), "topics": topic}
    own = keys(kind, registry.url)
    reading = runs(ticket(bootstrap, {**source, **hoist, **own}))
    reading.until_records(2)
    registered = ask(registry, "GET", f"/subjects/{topic}-value/versions/1")
    assert (registered["schemaType"], registered["schema"]) == (kind, TEXTS[kind])
    payloads = [message.value() for message in messages(bootstrap, topic)]
    assert {payload[:5] for payload in payloads} == {header(registered["id"])}
    assert [line_in(kind, payload[5:]) for payload in payloads] == ["one", "twö"]
    producer = Producer({"bootstrap.servers": bootstrap})
    for poison in (
        b"",
        payloads[0][:-1],
        header(999_999) + b"\0",
        header(registered["id"]) + b"\x02\x7f",
        None,
        payloads[0],
    ):
        producer.produce(topic, poison)
    assert producer.flush(300) == 0
    writing = runs(ticket(bootstrap, {**sink, **own, "errors.tolerance": "all"}))
    expected = "Struct{line=one}\nStruct{line=twö}\nnull\nStruct{line=one}\n"
    until(lambda: out.exists() and out.read_text().endswith("null\nStruct{line=one}\n"), "all that is sound")
    assert out.read_text() == expected
    for run in (reading, writing):
        run.drain()


def test_protobuf_schemas_that_refer_to_others(registry: RegistryProcess, name: str) -> None:
    inner = 'syntax = "proto3"; package n; message In { int32 a = 1; }'
    outer = 'syntax = "proto3"; import "n/in.proto"; message First {} message Out { n.In in = 1; }'
    ask(registry, "POST", f"/subjects/{name}-in/versions", {"schemaType": "PROTOBUF", "schema": inner})
    references = [{"name": "n/in.proto", "subject": f"{name}-in", "version": 1}]
    body = {"schemaType": "PROTOBUF", "schema": outer, "references": references}
    number = ask(registry, "POST", f"/subjects/{name}-value/versions", body)["id"]
    column = converter("PROTOBUF", registry.url, name).to_connect([header(number) + b"\x02\x02\x0a\x02\x08\x05"])
    assert column.values[0].values["in"].values == {"a": 5}
    assert (column.schema_of(0).name, column.schema_of(0).version) == ("Out", 1)  # type: ignore[union-attr]


def test_json_schemas_that_refer_to_others(registry: RegistryProcess, name: str) -> None:
    inner = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"type": "integer"}},
    }
    outer = {**inner, "properties": {"in": {"$ref": "in.json"}}}
    ask(registry, "POST", f"/subjects/{name}-in/versions", {"schemaType": "JSON", "schema": json.dumps(inner)})
    references = [{"name": "in.json", "subject": f"{name}-in", "version": 1}]
    body = {"schemaType": "JSON", "schema": json.dumps(outer), "references": references}
    number = ask(registry, "POST", f"/subjects/{name}-value/versions", body)["id"]
    single_converter = converter("JSON", registry.url, name, **{"json.fail.invalid.schema": "true"})
    assert single_converter.to_connect([header(number) + b'{"in":{"a":5}}']).values[0].values["in"].values == {"a": 5}


@pytest.mark.parametrize("kind", list(CLASSES))
def test_the_registry_guards_its_subjects(kind: str, registry: RegistryProcess, name: str) -> None:
    topic = f"{name}-{kind.lower()}"
    before = Schema("struct", name="geo.Point", fields=(Field("x", Schema("int32")),))
    after = Schema("struct", name="geo.Point", fields=(Field("x", STRING),))
    single_converter = converter(
        kind, registry.url, topic, **{"value.subject.name.strategy": "TopicRecordNameStrategy"}
    )
    single_converter.from_connect(Column([Struct(before, {"x": 1})], before))
    assert ask(registry, "GET", f"/subjects/{topic}-geo.Point/versions") == [1]
    ask(registry, "PUT", f"/config/{topic}-geo.Point", {"compatibility": "BACKWARD"})
    with pytest.raises(RegistryError, match="409"):
        single_converter.from_connect(Column([Struct(after, {"x": "a"})], after))


def test_confluents_own_files_are_taken(registry: RegistryProcess, name: str) -> None:
    assert sorted(KNOWN_FILES) == ["confluent/meta.proto", "confluent/type/decimal.proto"]
    schema = Schema("struct", fields=(Field("a", Schema("int8")),))
    single_converter = converter("PROTOBUF", registry.url, name)
    back = single_converter.to_connect(single_converter.from_connect(Column([Struct(schema, {"a": -5})], schema)))
    assert back.values[0].values == {"a": -5}
    assert back.schema_of(0).fields[0].schema.type == "int8"  # type: ignore[union-attr]
