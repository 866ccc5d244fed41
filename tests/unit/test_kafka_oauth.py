"""Tokens for OAUTHBEARER, from a real server."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keelman.kafka import oauth
from keelman.kafka.oauth import URL_KEY, allow_urls, tokens
from keelman.model.errors import InvalidArgument, Unauthenticated, Unavailable
from keelman.testing.token_server import TokenServer, token_server

CLIENT = {"clientId": "me", "clientSecret": "se cret", "scope": "kafka", "extension_cluster": "lkc"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenServer]:
    monkeypatch.setattr(oauth, "_allowed", set())
    with token_server() as made:
        allow_urls(f"https://other.example, {made.url}")
        yield made


def claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(body + "==")))


def test_client_credentials_are_sent_as_java_sends_them(server: TokenServer) -> None:
    made = tokens({URL_KEY: server.url}, CLIENT)
    token = made.current()
    assert (token.principal, token.extensions) == ("alice", {"cluster": "lkc"})
    assert server.asked == [
        ("Basic " + base64.b64encode(b"me:se cret").decode(), "grant_type=client_credentials&scope=kafka")
    ]
    assert made.current() is token, "one token as long as it is good"
    assert "se cret" not in repr(token)
    encoded = {"sasl.oauthbearer.header.urlencode": "true", "sasl.oauthbearer.client.credentials.client.id": "a:b"}
    tokens({URL_KEY: server.url, **encoded}, CLIENT).current()
    assert server.asked[-1][0] == "Basic " + base64.b64encode(b"a%3Ab:se+cret").decode()


def test_a_token_is_renewed_before_its_end_and_kept_while_none_comes(server: TokenServer) -> None:
    made = tokens({URL_KEY: server.url, "sasl.login.refresh.window.factor": "0"}, CLIENT)
    first, second = made.current(), made.current()
    assert claims(first.text)["n"] < claims(second.text)["n"]
    server.status = 500
    assert made.current() is second, "still good"
    server.status, server.life_seconds = 200, -1
    made.current()
    server.status = 401
    with pytest.raises(Unauthenticated, match=r"gives no token: it answered 401 invalid_client"):
        made.current()


def test_a_server_that_does_not_answer_is_asked_again_for_a_while(server: TokenServer) -> None:
    server.status = 503
    patience = {"sasl.login.retry.backoff.ms": "10", "sasl.login.retry.backoff.max.ms": "1000"}
    with pytest.raises(Unavailable, match="answered 503"):
        tokens({URL_KEY: server.url, **patience}, CLIENT).current()
    assert len(server.asked) > 1
    server.asked.clear()
    with pytest.raises(Unavailable):
        tokens({URL_KEY: server.url, **patience}, CLIENT).current(patient=False)
    assert len(server.asked) == 1


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
    said = claims(token.text)
    assert {k: said[k] for k in ("sub", "n", "scope")} == {"sub": "me", "n": 12.5, "scope": [" s1 ", " s2"]}
    assert said["exp"] - said["iat"] == pytest.approx(60)
    assert token.extensions == {"k": "v"}


def test_what_is_missing_is_named(server: TokenServer) -> None:
    with pytest.raises(InvalidArgument, match=r"client\.id is missing"):
        tokens({URL_KEY: server.url}, {})
    with pytest.raises(InvalidArgument, match=r"unsecuredLoginStringClaim_sub is missing"):
        tokens({}, {})
