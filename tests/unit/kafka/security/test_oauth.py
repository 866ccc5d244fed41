"""Tokens for OAUTHBEARER, from a real server."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keelman.kafka.security import oauth
from keelman.kafka.security.oauth import URL_KEY, allow_urls, tokens
from keelman.model.errors import InvalidArgument, Unauthenticated, Unavailable
from keelman.runtime.tls.contexts import server_context
from support.certificates import PASSWORD, Authority
from support.servers.token_server import TokenServer, token_server

CLIENT = {"clientId": "me", "clientSecret": "se cret", "scope": "kafka", "extension_cluster": "lkc"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenServer]:
    monkeypatch.setattr(oauth, "_allowed", set())
    with token_server() as running_server:
        allow_urls(f"https://other.example, {running_server.url}")
        yield running_server


def claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(body + "==")))


def test_client_credentials_are_sent_as_java_sends_them(server: TokenServer) -> None:
    source = tokens({URL_KEY: server.url}, CLIENT)
    token = source.current()
    assert (token.principal, token.extensions) == ("alice", {"cluster": "lkc"})
    assert server.asked == [
        ("Basic " + base64.b64encode(b"me:se cret").decode(), "grant_type=client_credentials&scope=kafka")
    ]
    assert source.current() is token, "one token as long as it is good"
    assert "se cret" not in repr(token)
    encoded = {"sasl.oauthbearer.header.urlencode": "true", "sasl.oauthbearer.client.credentials.client.id": "a:b"}
    tokens({URL_KEY: server.url, **encoded}, CLIENT).current()
    assert server.asked[-1][0] == "Basic " + base64.b64encode(b"a%3Ab:se+cret").decode()


def test_why_a_server_gives_none_is_told(server: TokenServer) -> None:
    fields = {URL_KEY: server.url}
    server.status = 401
    with pytest.raises(Unauthenticated, match=r"gives no token: it answered 401 invalid_client"):
        tokens(fields, CLIENT).current()
    server.status = 503
    with pytest.raises(Unavailable, match="answered 503"):
        tokens(fields, CLIENT).current()
    with token_server() as gone:
        allow_urls(gone.url)
    with pytest.raises(Unavailable, match=rf"{gone.url} does not answer: .*Connection refused"):
        tokens({URL_KEY: gone.url}, CLIENT).current()


def test_a_server_is_trusted_by_options_of_the_login_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(oauth, "_allowed", set())
    authority = Authority()
    issued = authority.issue("tokens", "127.0.0.1")
    context = server_context({"ssl.keystore.key": issued.key_pem, "ssl.keystore.certificate.chain": issued.chain_pem})
    with token_server(context) as server:
        allow_urls(server.url)
        brokers_trust = {URL_KEY: server.url, "ssl.truststore.certificates": authority.pem}
        with pytest.raises(
            Unauthenticated,
            match=rf"{server.url} gives no token: its certificate is not trusted: .*"
            r"\(see ssl.truststore.location among the options of sasl.jaas.config\)",
        ):
            tokens(brokers_trust, CLIENT).current()
        store = {
            "ssl.truststore.location": str(authority.write_trust(tmp_path / "trust.p12")),
            "ssl.truststore.password": PASSWORD,
        }
        assert tokens({URL_KEY: server.url}, CLIENT | store).current().principal == "alice"


def test_only_urls_on_the_list_are_asked(server: TokenServer, tmp_path: Path) -> None:
    for url in (server.url + "/", "http://169.254.169.254/", f"file://{tmp_path}/token"):
        with pytest.raises(InvalidArgument, match="cannot be accessed due to restrictions"):
            tokens({URL_KEY: url}, CLIENT)
    with pytest.raises(InvalidArgument, match='only "http", "https" and "file" are supported'):
        tokens({URL_KEY: "ftp://x"}, CLIENT)
    assert server.asked == []


def test_a_token_from_a_file(server: TokenServer, tmp_path: Path) -> None:
    text = tokens({URL_KEY: server.url}, CLIENT).current().text
    file = tmp_path / "token"
    file.write_text(text + "\n")
    allow_urls(f"file://{file}")
    assert tokens({URL_KEY: f"file://{file}"}, {}).current().text == text
    file.write_text("nonsense")
    with pytest.raises(Unauthenticated, match="no JWT with the claims exp and sub"):
        tokens({URL_KEY: f"file://{file}"}, {}).current()


def test_unsecured_tokens_are_made_of_options() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "me",
        "unsecuredLoginNumberClaim_n": "12.5",
        "unsecuredLoginListClaim_scope": "| s1 | s2",
        "unsecuredLoginLifetimeSeconds": "60",
        "unsecuredLoginExtension_k": "v",
    }
    token = tokens({}, options).current()
    token_claims = claims(token.text)
    assert {k: token_claims[k] for k in ("sub", "n", "scope")} == {"sub": "me", "n": 12.5, "scope": [" s1 ", " s2"]}
    assert token_claims["exp"] - token_claims["iat"] == pytest.approx(60)
    assert token.extensions == {"k": "v"}


def test_what_is_missing_is_named(server: TokenServer) -> None:
    with pytest.raises(InvalidArgument, match=r"client\.id is missing"):
        tokens({URL_KEY: server.url}, {})
    with pytest.raises(InvalidArgument, match=r"unsecuredLoginStringClaim_sub is missing"):
        tokens({}, {})
