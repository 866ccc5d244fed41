"""A worker's HTTP front, compared byte by byte with Apache Kafka Connect's recorded answers to the same requests."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from keelman.model.errors import InvalidArgument, Unavailable
from keelman.runtime.processes.ports import free_ports
from keelman.worker.config.basic_auth import read_basic_auth
from keelman.worker.config.typed import checked
from keelman.worker.rest.application import RestApi
from keelman.worker.rest.front.basic_auth import REFUSED
from keelman.worker.rest.front.front import open_front, peer_tls
from keelman.workers.properties.basic_auth import FILE
from keelman.workers.properties.listeners import METRICS, client_tls, server_tls
from keelman.workers.properties.typed import WorkerProperties
from recorded.rest.access_steps import EXTENSION, SECTIONS
from recorded.rest.record_access import exchange, jaas_file
from support.certificates import PASSWORD, Authority
from support.places import RECORDED_FOLDER
from support.worker_properties import OF_A_GROUP

ANSWERS: Mapping[str, Any] = json.loads((RECORDED_FOLDER / "rest" / "access.json").read_text())
# Jetty itself refuses these paths, before Connect sees them; here a connector's name may hold an escaped slash.
JETTY = ("x%2Fy", "//fence")
# Headers that the recorded configurations set; other headers are up to the server.
CONFIGURED = ("access-control-", "vary", "x-", "cache-control", "expires")


@contextlib.asynccontextmanager
async def front(tmp_path: Path, extra: Mapping[str, str]) -> AsyncIterator[dict[str, int]]:
    """A worker's listeners with its REST application, which has no group behind it; yields their ports."""
    ports = dict(zip(("main", "admin"), free_ports(2), strict=True))
    filled = {k: v.replace("{admin}", f"127.0.0.1:{ports['admin']}") for k, v in extra.items()}
    listeners = {"listeners": f"http://127.0.0.1:{ports['main']}", FILE: str(jaas_file(tmp_path))}
    properties = checked({**OF_A_GROUP, **listeners, **filled})
    api = RestApi(peer_tls(properties))
    try:
        async with open_front(api.app, properties):
            yield ports
    finally:
        await api.close()


def configured(answer: Mapping[str, Any]) -> list[tuple[str, object]]:
    """The configured headers of an answer: dates without their time, lists of methods without an order."""
    results = []
    for name, value in answer["headers"]:
        if name.startswith(CONFIGURED):
            dated, listed = name == "expires", name.endswith("-methods")
            results.append((name, "a date" if dated else sorted(value.split(",")) if listed else value))
    return results


def needs_a_group(answer: Mapping[str, Any]) -> bool:
    """Whether Connect's answer comes from a part that this application lacks here."""
    return answer["status"] in (200, 400) or "Logger" in answer["body"]


@pytest.mark.parametrize("section", list(SECTIONS))
async def test_the_same_answers_as_connect(section: str, tmp_path: Path) -> None:
    recorded = ANSWERS[section]
    assert recorded["properties"] == SECTIONS[section][0]
    compared = 0
    async with front(tmp_path, recorded["properties"]) as ports:
        for step in recorded["steps"]:
            if any(part in step["name"] for part in JETTY):
                continue
            theirs, ours = step["answer"], await exchange(ports[step["listener"]], step["request"].encode())
            assert configured(ours) == configured(theirs), step["name"]
            if theirs["status"] == 401 or "***" in step["name"]:  # invalid base64 is a 500 there
                assert (ours["status"], ours["body"]) == (401, REFUSED), step["name"]
                assert any(name == "www-authenticate" for name, _ in ours["headers"])
            elif needs_a_group(theirs):
                assert ours["status"] != 401, step["name"]
            else:
                assert (ours["status"], ours["body"]) == (theirs["status"], theirs["body"]), step["name"]
            compared += 1
    assert compared >= len(SECTIONS[section][1]) - len(JETTY)


def test_the_record_is_of_these_steps() -> None:
    for section, (_, steps) in SECTIONS.items():
        assert [(s["name"], s["listener"], s["request"]) for s in ANSWERS[section]["steps"]] == [
            tuple(s) for s in steps
        ]


async def test_configured_headers_do_not_hide_those_of_an_answer(tmp_path: Path) -> None:
    rules = "set Content-Type: text/odd, add Location: nowhere, set X-A: 1, set X-A: 2, add X-B: 1, add X-B: 2"
    async with front(tmp_path, {"response.http.headers.config": rules}) as ports:
        answer = await exchange(ports["main"], b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    results = [tuple(header) for header in answer["headers"] if header[0] in ("content-type", "location", "x-a", "x-b")]
    json_type = ("content-type", "application/json")
    assert results == [json_type, ("location", "nowhere"), ("x-a", "2"), ("x-b", "1"), ("x-b", "2")]


@pytest.mark.parametrize(
    ("extra", "key"),
    [
        ({"rest.extension.classes": "com.example.Other"}, "rest.extension.classes"),
        ({"rest.extension.classes": f"{EXTENSION},com.example.Other"}, "rest.extension.classes"),
        ({"access.control.allow.origin": "http://(one"}, "access.control.allow.origin"),
        ({"response.http.headers.config": "put X: 1"}, "Invalid header config action: 'put'"),
        ({"response.http.headers.config": "set"}, "Invalid format of header config 'set'"),
        ({"response.http.headers.config": "set X"}, "Invalid format of header name and header value pair 'X'"),
        ({"response.http.headers.config": "set X Y: 1"}, "Invalid header name 'X Y'"),
        ({"response.http.headers.config": "setDate X: soon"}, "response.http.headers.config"),
        ({"listeners": "ftp://x:1"}, "listeners"),
        ({"listeners": "http://x:70000"}, "listeners"),
        ({"listeners": "http://x"}, "listeners"),
        ({"listeners": " "}, "listeners"),
        ({"admin.listeners": "http://x:1,nothing"}, "admin.listeners"),
        ({"rest.advertised.listener": "ftp"}, "rest.advertised.listener"),
    ],
)
def test_mistakes_are_named(extra: dict[str, str], key: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        checked({**OF_A_GROUP, **extra})
    assert key in raised.value.message


@pytest.mark.parametrize(
    ("extra", "url"),
    [
        ({"listeners": "http://one:1,https://two:2"}, "http://one:1/"),
        ({"listeners": "https://two:2,http://one:1"}, "http://one:1/"),
        ({"listeners": "HTTPS://Two:2/"}, "https://two:2/"),
        ({"listeners": "http://one:1,https://two:2", "rest.advertised.listener": "HTTPS"}, "https://two:2/"),
        (
            {"listeners": "http://one:1", "rest.advertised.host.name": "far", "rest.advertised.port": "9"},
            "http://far:9/",
        ),
        ({"listeners": "http://[::1]:1"}, "http://[::1]:1/"),
    ],
)
def test_what_others_are_told(extra: dict[str, str], url: str) -> None:
    listeners = checked({**OF_A_GROUP, **extra}).listeners
    assert listeners.url({listener: listener.port for listener in listeners.main}) == url


def test_https_keys_are_all_or_nothing(tmp_path: Path) -> None:
    """A key for the listeners alone disables the plain keys; admin listeners have their own."""
    issued = Authority().issue("worker", "localhost")
    plain = {
        "ssl.keystore.location": str(issued.write_pkcs12(tmp_path / "key.p12")),
        "ssl.keystore.password": PASSWORD,
    }
    assert server_tls(plain).verify_mode is ssl.CERT_NONE
    assert client_tls(plain).check_hostname
    with pytest.raises(InvalidArgument, match=r"listeners\.https\.ssl\.keystore\.location is missing"):
        server_tls({**plain, "listeners.https.ssl.client.auth": "required"})
    own = {f"admin.listeners.https.{key}": value for key, value in plain.items()}
    with pytest.raises(InvalidArgument, match=r"^ssl\.keystore\.location is missing"):
        server_tls(own)
    assert server_tls({**own, "admin.listeners.https.ssl.client.auth": "requested"}, admin=True).verify_mode
    with pytest.raises(InvalidArgument, match=r"admin\.listeners\.https\.ssl\.keystore\.password") as raised:
        server_tls({**own, "admin.listeners.https.ssl.keystore.password": "other-word"}, admin=True)
    assert "other-word" not in raised.value.message


def _users(tmp_path: Path, jaas: str, environment: Mapping[str, str] | None = None) -> Any:
    file = tmp_path / "jaas.conf"
    file.write_text(jaas)
    raw = {"rest.extension.classes": EXTENSION, **({} if environment else {FILE: str(file)})}
    return read_basic_auth(raw, environment or {})


def test_a_jaas_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("# all of them\nalice: wonder\nbob=a\\u00e9\n")
    module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
    text = f"""// first
        Other {{ com.example.Module optional; }};
        /* then
           ours */ KafkaConnect {{ {module} required file='x' file="{tmp_path}/users" debug = "true"; }};"""
    users = _users(tmp_path, text.replace("file='x' ", ""))
    assert users.users == {"alice": "wonder", "bob": "aé"}
    assert "wonder" not in repr(users)
    option = {"KAFKA_OPTS": f"-Xmx1g -Djava.security.auth.login.config={tmp_path}/jaas.conf"}
    assert _users(tmp_path, text.replace("file='x' ", ""), option) == users
    for wrong, message in (
        (text.replace("KafkaConnect", "KafkaServer"), "no entry KafkaConnect"),
        (text.replace(module, "com.sun.security.auth.module.JndiLoginModule"), "JndiLoginModule"),
        (text.replace("/users", "/nobody"), "cannot be read"),
        ("KafkaConnect { " + module + " required; };", "no file="),
    ):
        with pytest.raises(InvalidArgument, match=message):
            _users(tmp_path, wrong)
    (tmp_path / "users").write_text("")
    with pytest.raises(InvalidArgument, match="names no user"):
        _users(tmp_path, text)


async def test_a_taken_port_is_named_by_its_key(tmp_path: Path) -> None:
    async with front(tmp_path, {}) as ports:
        taken = {"admin.listeners": f"http://127.0.0.1:{ports['main']}"}
        with pytest.raises(Unavailable, match=r"admin\.listeners: port"):
            async with front(tmp_path, taken):
                pass


def test_nobody_is_trusted_without_https() -> None:
    properties: WorkerProperties = checked(OF_A_GROUP)
    assert peer_tls(properties).cert_store_stats()["x509"] == 0


async def test_metrics_alone_are_served_apart_without_a_password(tmp_path: Path) -> None:
    [port] = free_ports(1)
    guarded = {"rest.extension.classes": EXTENSION, METRICS: f"http://127.0.0.1:{port}"}
    async with front(tmp_path, guarded) as ports:

        async def status(path: str, port: int) -> int:
            request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
            return int((await exchange(port, request))["status"])

        for path in ("/", "/connectors", "/health", "/admin/loggers", "/metrics/x", "/connector-plugins"):
            assert await status(path, port) == 404, path
            assert await status(path, ports["main"]) in (401, 404), path
        assert await status("/metrics", port) == 503  # the worker has no group yet
        assert await status("/metrics", ports["main"]) == 401


async def test_the_listener_of_metrics_whose_port_is_taken_is_named(tmp_path: Path) -> None:
    async with front(tmp_path, {}) as ports:
        taken = {METRICS: f"http://127.0.0.1:{ports['main']}"}
        with pytest.raises(Unavailable, match=rf"{METRICS}: port {ports['main']} on 127.0.0.1 is taken"):
            async with front(tmp_path, taken):
                pass
