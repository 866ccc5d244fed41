"""The schema registries of a process: which answers they cache and retry, and how their silence affects records."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from keelman.connect.bad_records.tolerance import RecordRefused
from keelman.connect.errors import ConfigValueError
from keelman.connect.records import Column, SourceBatch
from keelman.connect.registry.interface import (
    RegistryError,
    RegistryRefused,
    RegistryUnavailable,
    SchemaKind,
    SchemaText,
)
from keelman.connect.schema import STRING
from keelman.engine.records import registries
from keelman.engine.records.registries import open_registry
from keelman.engine.source.conversion import SourceConversion
from support.servers.http_server import HttpRequest, http_server

URL = "schema.registry.url"
AVRO = "io.confluent.connect.avro.AvroConverter"


@dataclass
class Answers:
    """A server's answers by path, and the requests that it got."""

    url: str
    answers: dict[str, tuple[int, object]] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@contextlib.contextmanager
def answering() -> Iterator[Answers]:
    def serve(request: HttpRequest) -> None:
        request.body()
        answers.asked.append((request.path, request.headers.get("Authorization")))
        status, answer = answers.answers.get(request.path, (404, {"error_code": 40403, "message": "none"}))
        request.answer(status, json.dumps(answer).encode())

    with http_server(serve) as port:
        answers = Answers(f"http://127.0.0.1:{port}")
        yield answers


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    registries._registries.clear()


def test_one_registry_serves_all_that_name_it_the_same_way() -> None:
    registry = open_registry({URL: "http://r:8081", "auto.register.schemas": "true"})
    assert open_registry({URL: "http://r:8081", "connect.meta.data": "false"}) is registry
    assert open_registry({URL: "http://r:8081", "bearer.auth.token": "t"}) is not registry


def test_what_was_found_is_kept_and_what_was_not_only_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering() as server:
        registry = open_registry({URL: server.url})
        server.answers["/schemas/ids/1"] = 200, {"schema": '"int"'}
        for _ in range(3):
            assert registry.schema(1) == SchemaText(SchemaKind.AVRO, '"int"')
            with pytest.raises(RegistryError, match="40403"):
                registry.schema(2)
        assert [path for path, _ in server.asked] == ["/schemas/ids/1", "/schemas/ids/2"]
        monkeypatch.setattr(registries, "NO_SECONDS", 0)
        with pytest.raises(RegistryError):
            registry.schema(3)
        server.answers["/schemas/ids/3"] = 200, {"schema": '"long"'}
        assert registry.schema(3).text == '"long"'
    assert registry.schema(1).text == '"int"', "also when it is away"
    with pytest.raises(RegistryUnavailable, match="is away"):
        registry.schema(4)


def test_a_busy_one_is_asked_again_and_then_told_as_away() -> None:
    with answering() as server:
        server.answers["/schemas/ids/1"] = 503, {"message": "busy"}
        registry = open_registry({URL: server.url, "max.retries": "2", "retries.wait.ms": "1"})
        with pytest.raises(RegistryUnavailable, match="503 busy"):
            registry.schema(1)
        assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("config", "header"),
    [
        ({"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "a:b"}, "Basic YTpi"),
        ({"basic.auth.credentials.source": "USER_INFO", "schema.registry.basic.auth.user.info": "a:b"}, "Basic YTpi"),
        ({"bearer.auth.token": "t"}, "Bearer t"),
        (
            {
                "basic.auth.credentials.source": "SASL_INHERIT",
                "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
                'username="a" password="b";',
            },
            "Basic YTpi",
        ),
        ({"request.header.Authorization": "Own x"}, "Own x"),
        ({}, None),
    ],
)
def test_credentials_go_along(config: dict[str, str], header: str | None) -> None:
    with answering() as server:
        server.answers["/schemas/ids/1"] = 200, {"schema": '"int"'}
        open_registry({URL: server.url, **config}).schema(1)
        assert server.asked == [("/schemas/ids/1", header)]


@pytest.mark.parametrize(
    "wrong",
    [
        {URL: "http://user:s3cret@host:abc"},
        {"basic.auth.credentials.source": "USER_INFO"},
        {"basic.auth.credentials.source": "SASL_INHERIT", "sasl.jaas.config": 'org.x.Y required username="u'},
        {"bearer.auth.token": "t\u00f6ken"},
        {"bearer.auth.token": "to\nken"},
    ],
)
def test_no_record_is_read_with_what_is_not_legal(wrong: dict[str, str]) -> None:
    own = {f"value.converter.{key}": value for key, value in {URL: "http://r:1", **wrong}.items()}
    config = {"name": "c", "errors.tolerance": "all", "key.converter": AVRO, "value.converter": AVRO}
    with pytest.raises(ConfigValueError) as caught:
        SourceConversion({**config, f"key.converter.{URL}": "http://r:1", **own}, {})
    assert not re.search("s3cret|ken", f"{caught.value} {caught.value.value}")


@pytest.mark.parametrize(
    "config",
    [
        {URL: ""},
        {URL: "http://"},
        {URL: "http://r:8081", "basic.auth.credentials.source": "USER_INFO"},
        {URL: "http://r:8081", "max.retries": "many"},
    ],
)
def test_what_is_not_legal_is_told(config: dict[str, str]) -> None:
    with pytest.raises(ConfigValueError):
        open_registry(config)


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (503, {"message": "no"}, RegistryUnavailable),
        (401, {"message": "no"}, RegistryRefused),
        (404, "default backend - 404", RegistryUnavailable),
        (404, {"message": "no such page"}, RegistryUnavailable),
        (302, "", RegistryRefused),
        (200, "<html>", RegistryRefused),
        (200, {}, RegistryRefused),
        (200, {"id": None}, RegistryRefused),
    ],
)
def test_no_record_is_passed_over_for_what_is_no_registrys_word(
    status: int, answer: object, error: type[Exception]
) -> None:
    with answering() as server:
        server.answers["/subjects/t-value/versions?normalize=false"] = status, answer
        config = {
            "name": "c",
            "errors.tolerance": "all",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": AVRO,
            f"value.converter.{URL}": server.url,
            "value.converter.max.retries": "0",
        }
        conversion = SourceConversion(config, {})
        with pytest.raises(RecordRefused) as caught:
            list(conversion.payloads(SourceBatch("t", Column(["x"], STRING))))
        assert isinstance(caught.value.failure.error, error)
        assert caught.value.retriable == (error is RegistryUnavailable)
