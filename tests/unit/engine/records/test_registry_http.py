"""The client of schema registries: TLS, a proxy, bounded waits, and users in URLs, which are never shown."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import pytest

from keelman.connect.config.secret_keys import literal_secrets, shown
from keelman.connect.errors import ConfigValueError
from keelman.connect.registry.keys import registry_keys
from keelman.engine.records import registry_http as schema_registry
from keelman.engine.records.registries import open_registry
from keelman.engine.records.registry_http import RegistryHttp, client_properties
from keelman.model.errors import Unavailable
from keelman.runtime.logs.redaction import Redactor
from keelman.runtime.tls.contexts import server_context
from keelman.worker.rest.validated_secrets import hidden_answer
from support.certificates import PASSWORD, Authority, as_jks
from support.servers.http_server import HttpRequest, http_server

URL, TLS = "schema.registry.url", "schema.registry.ssl."
ANSWER = b'{"schema": "\\"int\\""}'


def schema(request: HttpRequest) -> None:
    request.answer(200, ANSWER)


def asked(config: dict[str, str]) -> object:
    client = RegistryHttp(client_properties({"max.retries": "0", **config}))
    try:
        return client.ask("GET", "/schemas/ids/1")
    finally:
        client.close()


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, authority = tmp_path_factory.mktemp("stores"), Authority()
    server, client = authority.issue("registry", "127.0.0.1"), authority.issue("client")
    (folder / "server.pem").write_text(server.key_pem + server.chain_pem)
    (folder / "client.pem").write_text(client.key_pem + client.chain_pem)
    (folder / "trust.pem").write_text(authority.pem)
    authority.write_trust(folder / "trust.p12")
    as_jks(folder / "trust.p12", folder / "trust.jks")
    client.write_pkcs12(folder / "client.p12")
    return folder


@pytest.mark.parametrize(
    ("trust", "key"), [("trust.jks", "client.p12"), ("trust.p12", "client.pem"), ("trust.pem", "client.p12")]
)
def test_both_sides_prove_who_they_are(stores: Path, trust: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_registry, "MAX_SECONDS", 60.0)  # Java reads the stores of its own kind meanwhile
    own = {"ssl.keystore.location": str(stores / "server.pem"), "ssl.client.auth": "required"}
    with http_server(schema, server_context({**own, "ssl.truststore.location": str(stores / "trust.pem")})) as port:
        url = f"https://127.0.0.1:{port}"
        trusting = {
            f"{TLS}truststore.location": str(stores / trust),
            f"{TLS}truststore.password": "" if trust.endswith("pem") else PASSWORD,
        }
        proving = {
            f"{TLS}keystore.location": str(stores / key),
            f"{TLS}keystore.password": "" if key.endswith("pem") else PASSWORD,
        }
        assert asked({URL: url, **trusting, **proving}) == {"schema": '"int"'}
        with pytest.raises(Unavailable, match="does not answer"):
            asked({URL: url, **proving})
        with pytest.raises(Unavailable, match="does not answer"):
            asked({URL: url, **trusting})


def test_the_name_of_the_server_counts_unless_it_is_said_not_to(stores: Path) -> None:
    with http_server(schema, server_context({"ssl.keystore.location": str(stores / "server.pem")})) as port:
        config = {URL: f"https://localhost:{port}", f"{TLS}truststore.location": str(stores / "trust.pem")}
        with pytest.raises(Unavailable, match=r"(?i)host"):
            asked(config)
        assert asked({**config, f"{TLS}endpoint.identification.algorithm": ""})


@pytest.mark.parametrize("prefix", ["", "schema.registry."])
def test_headers_and_the_proxy_are_heeded(prefix: str) -> None:
    seen: list[tuple[str, str | None]] = []

    def proxy(request: HttpRequest) -> None:
        seen.append((request.path, request.headers["X-Team"]))
        schema(request)

    with http_server(proxy) as port:
        way = {f"{prefix}proxy.host": "127.0.0.1", f"{prefix}proxy.port": str(port)}
        assert asked({URL: "http://registry.test:8081", f"{prefix}request.header.X-Team": "sea", **way})
    assert seen == [("http://registry.test:8081/schemas/ids/1", "sea")]


@pytest.mark.parametrize("where", ["head", "body"])
def test_an_answer_in_drips_ends_in_time_and_the_next_url_is_asked(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_registry, "MAX_SECONDS", 2.0)
    ended = threading.Event()

    def drip(request: HttpRequest) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\n")
        if where == "body":
            request.wfile.write(b"Content-Length: 100000\r\n\r\n")
        with contextlib.suppress(OSError):
            while not ended.wait(0.05):
                request.wfile.write(b"x")

    with http_server(drip) as slow, http_server(schema) as quick:
        try:
            begun = time.monotonic()
            with pytest.raises(Unavailable, match=f"{slow}"):
                asked({URL: f"http://127.0.0.1:{slow}"})
            assert time.monotonic() - begun < 20, "it would be 5000 s"
            assert asked({URL: f"http://127.0.0.1:{slow},http://127.0.0.1:{quick}"})
        finally:
            ended.set()


SECRETS = {URL: "https://alice:s3cr%40t@r1:8081,https://t0ken@r2:8081", "topic": "t@x"}


def test_users_in_urls_are_hidden_wherever_a_configuration_is_shown() -> None:
    hidden = "https://[hidden]@r1:8081,https://[hidden]@r2:8081"
    assert shown(SECRETS) == {URL: hidden, "topic": "t@x"}
    redactor = Redactor()
    redactor.add(literal_secrets({f"value.converter.{URL}": SECRETS[URL]}))
    assert redactor.hide(f"{SECRETS[URL]} s3cr@t s3cr%40t") == f"{hidden} [hidden] [hidden]"
    value = {"name": URL, "value": SECRETS[URL], "recommended_values": [], "errors": [], "visible": True}
    answer = hidden_answer({"error_count": 0, "configs": [{"definition": None, "value": value}]}, SECRETS)
    assert answer["configs"][0]["value"]["value"] == hidden
    token = {"value.converter.request.header.Authorization": "Bearer t0ken", "value.converter.request.header.X-A": "b"}
    assert list(shown(token).values()) == ["[hidden]", "b"]
    references = {URL: "https://${env:U}:${env:P}@r1:8081"}
    assert shown(references) == references


@pytest.mark.parametrize("bad", ["https://alice:s3cr@t@:x", "ftp://alice:s3cr@t@r", "https://alice:s3cr@t@r:99999999"])
def test_no_error_about_a_url_names_its_user(bad: str) -> None:
    with pytest.raises(ConfigValueError) as caught:
        open_registry({URL: bad})
    results = [str(caught.value), *registry_keys().validate({URL: bad})[URL].errors]
    assert len(results) == 2 or not bad.startswith("ftp")
    for text in results:
        assert "alice" not in text
        assert "s3cr" not in text


def test_an_error_of_one_that_is_away_names_its_url_without_the_user() -> None:
    with pytest.raises(Unavailable) as caught:
        asked({URL: "http://alice:s3cret@127.0.0.1:1"})
    assert "http://127.0.0.1:1 does not answer" in caught.value.message
    assert "alice" not in caught.value.message


def test_all_that_is_heeded_is_among_the_keys() -> None:
    keys = registry_keys().keys
    for name in ("ssl.truststore.location", "ssl.keystore.key", "ssl.key.password", "proxy.host", "proxy.port"):
        assert f"schema.registry.{name}" in keys
    assert all(keys[name].type.value == "PASSWORD" for name in keys if name.endswith((".password", "keystore.key")))
