"""Converters with a real schema registry: through source and sink tasks, and while the registry is away."""

from __future__ import annotations

import base64
import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer

from keelman.connect.converters.configured import converter_for
from keelman.connect.converters.converter import Converter
from keelman.connect.errors import DataError
from keelman.connect.records import Column
from keelman.connect.registry.interface import RegistryRefused, RegistryUnavailable, header
from keelman.connect.schema import STRING, Field, Schema, Struct
from keelman.engine.records.registries import open_registry
from support.copying.harness import Run, ticket
from support.kafka.topics import create_topic, messages
from support.servers.http_server import HttpRequest, http_server
from support.servers.registry import RegistryProcess
from support.waiting import until

pytestmark = pytest.mark.component

AVRO = "io.confluent.connect.avro.AvroConverter"
HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
SUBJECTS = "io.confluent.kafka.serializers.subject."
POINT = Schema("struct", name="geo.Point", fields=(Field("x", Schema("int32")), Field("y", Schema("int32"))))


def avro(url: str, **more: str) -> dict[str, str]:
    return {"value.converter": AVRO, "value.converter.schema.registry.url": url, **more}


def converter(url: str, topic: str, **more: str) -> Converter:
    keys = {f"value.converter.{key}": value for key, value in more.items()}
    return converter_for("value", avro(url, **keys), {}, open_registry).of_topic(topic)


def ask(registry: RegistryProcess, method: str, path: str, body: Any = None) -> Any:
    return httpx.request(method, registry.url + path, json=body, timeout=300, trust_env=False, verify=False).json()


def source(name: str, topic: str, file: Path, url: str) -> dict[str, str]:
    hoist = {"transforms": "h", "transforms.h.type": HOIST, "transforms.h.field": "line"}
    own = {"name": name, "connector.class": "FileStreamSource", "file": str(file), "topic": topic}
    return {**own, **hoist, **avro(url)}


def sink(name: str, topic: str, file: Path, url: str, **more: str) -> dict[str, str]:
    own = {"name": name, "connector.class": "FileStreamSink", "file": str(file), "topics": topic}
    return {**own, **avro(url), **more}


async def test_records_go_through_kafka_as_avro_and_on_while_the_registry_is_away(
    bootstrap: str, registry: RegistryProcess, name: str, runs: Callable[..., Run], tmp_path: Path
) -> None:
    create_topic(bootstrap, name, 1)
    create_topic(bootstrap, f"{name}-new", 1)
    path, new, out = tmp_path / "given.txt", tmp_path / "new.txt", tmp_path / "out.txt"
    path.write_text("one\ntwö\n")
    new.write_text("three\n")
    reading = runs(ticket(bootstrap, source(name, name, path, registry.url)))
    writing = runs(ticket(bootstrap, sink(f"{name}-out", name, out, registry.url)))
    reading.until_records(2)
    writing.until_records(2)
    assert out.read_text() == "Struct{line=one}\nStruct{line=twö}\n"
    (prefix,) = {message.value()[:5] for message in messages(bootstrap, name)}
    registered = ask(registry, "GET", f"/subjects/{name}-value/versions/1")
    assert prefix == header(registered["id"])
    assert json.loads(registered["schema"])["fields"] == [{"name": "line", "type": "string"}]
    await registry.end(signal.SIGKILL)
    try:
        with path.open("a") as stream:
            stream.write("three\n")
        reading.until_records(3)
        writing.until_records(3)
        assert out.read_text().endswith("Struct{line=three}\n")
        unknown = runs(ticket(bootstrap, source(f"{name}-new", f"{name}-new", new, registry.url)))
        failed = unknown.until_state("FAILED")
        assert failed.retriable
        assert "schema registry is away" in failed.message
    finally:
        await registry.start()
    again = runs(ticket(bootstrap, source(f"{name}-new", f"{name}-new", new, registry.url)))
    again.until_records(1)
    for run in (reading, writing, again):
        run.drain()


def test_a_record_of_an_unknown_schema_goes_by_the_policy(
    bootstrap: str, registry: RegistryProcess, name: str, runs: Callable[..., Run], tmp_path: Path
) -> None:
    create_topic(bootstrap, name, 1)
    good = converter(registry.url, name).from_connect(Column(["good"], STRING))[0]
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in (good, header(999_999) + b"\x02", b"no avro", None, good):
        producer.produce(name, value)
    assert producer.flush(300) == 0
    failed = runs(ticket(bootstrap, sink(f"{name}-1", name, tmp_path / "1.txt", registry.url))).until_state("FAILED")
    assert not failed.retriable
    assert "40403" in failed.message
    assert "offset 1" in failed.message
    tolerant = {"errors.tolerance": "all"}
    run = runs(ticket(bootstrap, sink(f"{name}-2", name, tmp_path / "2.txt", registry.url, **tolerant)))
    until(lambda: (tmp_path / "2.txt").exists() and (tmp_path / "2.txt").read_text() == "good\nnull\ngood\n", "copied")
    run.drain()


def test_each_strategy_has_its_subject_and_no_schema_goes_where_it_does_not_fit(
    registry: RegistryProcess, name: str
) -> None:
    point = Column([Struct(POINT, {"x": 1, "y": -2})], POINT)
    for strategy, subject in (
        ("TopicNameStrategy", f"{name}-value"),
        ("RecordNameStrategy", "geo.Point"),
        ("TopicRecordNameStrategy", f"{name}-geo.Point"),
    ):
        single_converter = converter(registry.url, name, **{"value.subject.name.strategy": SUBJECTS + strategy})
        back = single_converter.to_connect(single_converter.from_connect(point))
        assert back.values[0].values == {"x": 1, "y": -2}
        assert (back.schema_of(0).name, back.schema_of(0).version) == ("geo.Point", 1)
        assert ask(registry, "GET", f"/subjects/{subject}/versions") == [1]
    rule = {"compatibility": "BACKWARD"}
    ask(registry, "PUT", f"/config/{name}-value", rule)
    with pytest.raises(DataError, match="409"):
        converter(registry.url, name).from_connect(Column([1], Schema("int32")))
    present_converter = converter(registry.url, name, **{"auto.register.schemas": "false"})
    assert present_converter.from_connect(point)[0][5:] == b"\x02\x03"
    with pytest.raises(DataError, match="40403"):
        present_converter.from_connect(Column(["text"], STRING))
    latest = converter(registry.url, name, **{"auto.register.schemas": "false", "use.latest.version": "true"})
    assert latest.from_connect(point)[0][5:] == b"\x02\x03"
    with pytest.raises(DataError, match="Incompatible schema"):
        latest.from_connect(Column(["text"], STRING))


def test_schemas_that_refer_to_others_are_read(registry: RegistryProcess, name: str) -> None:
    inner = {"type": "record", "name": "In", "namespace": "n", "fields": [{"name": "a", "type": "int"}]}
    outer = {"type": "record", "name": "Out", "namespace": "n", "fields": [{"name": "in", "type": ["null", "n.In"]}]}
    ask(registry, "POST", f"/subjects/{name}-in/versions", {"schema": json.dumps(inner)})
    references = [{"name": "n.In", "subject": f"{name}-in", "version": 1}]
    body = {"schema": json.dumps(outer), "references": references}
    number = ask(registry, "POST", f"/subjects/{name}-value/versions", body)["id"]
    column = converter(registry.url, name).to_connect([header(number) + b"\x02\x06"])
    assert column.values[0].values["in"].values == {"a": 3}
    assert column.schema_of(0).fields[0].schema.name == "n.In"


def test_the_registry_is_asked_with_credentials_and_by_the_url_that_answers(
    registry: RegistryProcess, name: str
) -> None:
    with guarded(registry.url, "alice:secret") as url:
        nobody = "http://127.0.0.1:1"
        held = {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "alice:secret"}
        (payload,) = converter(f"{nobody},{url}", name, **held).from_connect(Column(["x"], STRING))
        assert payload is not None
        in_url = url.replace("http://", "http://alice:secret@")
        assert converter(in_url, name).to_connect([payload]).values == ["x"]
        with pytest.raises(RegistryRefused, match="401"):
            converter(url, name).to_connect([payload])
    with pytest.raises(RegistryUnavailable, match="is away"):
        converter(nobody, name).to_connect([payload])


@contextlib.contextmanager
def guarded(url: str, user: str) -> Iterator[str]:
    """A proxy of a registry that admits one user only."""
    expected = "Basic " + base64.b64encode(user.encode()).decode()

    def serve(request: HttpRequest) -> None:
        body = request.body()
        status, content = 401, b'{"error_code": 401, "message": "who are you"}'
        if request.headers.get("Authorization") == expected:
            headers = {"Content-Type": request.headers.get("Content-Type") or "application/json"}
            answer = httpx.request(
                request.command, url + request.path, content=body, headers=headers, timeout=300, trust_env=False
            )
            status, content = answer.status_code, answer.content
        request.answer(status, content)

    with http_server(serve) as port:
        yield f"http://127.0.0.1:{port}"
