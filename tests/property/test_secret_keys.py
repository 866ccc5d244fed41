"""No secret of a configuration is shown, whatever prefix its key has; the shown configuration can be sent back."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keelman.connect.config.client_definitions import client_keys
from keelman.connect.config.secret_keys import (
    is_secret_key,
    kept_json,
    kept_values,
    literal_secrets,
    shown,
    shown_json,
    shown_value,
    without_users,
)
from keelman.connect.config.types import Type
from keelman.model.errors import InvalidArgument

CLIENT_KEYS = {k: d for client in ("producer", "consumer", "admin") for k, d in client_keys(client).items()}
PASSWORDS = sorted(k for k, d in CLIENT_KEYS.items() if d.type is Type.PASSWORD)
PLAIN = sorted(k for k, d in CLIENT_KEYS.items() if d.type is not Type.PASSWORD)
OTHERS = (
    "basic.auth.user.info", "bearer.auth.token", "connection.password", "CONNECTION_PASSWORD", "dbPassword", "apiKey",
    "api_key", "x-api-key", "access.token", "clientSecret", "OAuthToken", "aws.secret.access.key", "azure.account.key",
    "gcs.credentials", "google.credentials.json", "private_key", "delegation.token.master.key",
    "password.encoder.secret", "schema.registry.request.header.authorization", "vault.approle.secret_id",
    "password.2", "client.credentials", "pass", "user.pass", "sas.key", "jwt", "authorization", "connection.string",
    "azure.connection-string", "passcode", "licenseKey", "session_key", "http.request.cookie", "storage.sas.url",
)  # fmt: skip
NOT_SECRET = (
    "topic", "key.converter", "tokens.max", "max.tokens", "keelman.secrets.policy", "ssl.key.alias",
    "message.key.columns", "basic.auth.credentials.source", "sasl.oauthbearer.token.endpoint.url",
    "config.providers.file.param.allowed.paths",
    "primary.key", "partition.key", "routing.key", "compass", "bypass.proxy", "passthrough", "jwt.audience",
    "authorization.type", "connection.strings.max", "pass.through",
    "delegation.token.expiry.time.ms", "aws.access.key.id", "ssl.keystore.location", "author",
)  # fmt: skip
PREFIXES = (
    "", "producer.", "consumer.", "admin.", "listeners.https.", "config.providers.vault.param.", "producer.override.",
    "consumer.override.", "admin.override.", "listener.name.internal.", "listener.name.internal.plain.",
    "value.converter.schema.registry.", "confluent.topic.",
)  # fmt: skip
SECRET = st.text(string.ascii_letters + string.digits + "!#%*-_.~+", min_size=8, max_size=24).map(lambda t: f"s3-{t}")
REFERENCE = st.builds("${{{}:{}}}".format, st.sampled_from(("file", "env", "vault")), st.text("abcz/_.", min_size=1))


@given(prefix=st.sampled_from(PREFIXES), key=st.sampled_from((*PASSWORDS, *OTHERS)), secret=SECRET)
def test_secret_keys_are_hidden_behind_every_prefix(prefix: str, key: str, secret: str) -> None:
    assert is_secret_key(prefix + key)
    assert shown({prefix + key: secret}) == {prefix + key: "[hidden]"}
    assert literal_secrets({prefix + key: secret}) == {secret: "[hidden]"}


@given(prefix=st.sampled_from(PREFIXES), key=st.sampled_from((*PLAIN, *NOT_SECRET)), value=SECRET)
def test_other_keys_are_shown(prefix: str, key: str, value: str) -> None:
    assert shown({prefix + key: value}) == {prefix + key: value}
    assert literal_secrets({prefix + key: value}) == {}


@given(key=st.sampled_from((*PASSWORDS, *OTHERS)), reference=REFERENCE, secret=SECRET)
def test_references_are_shown_and_what_stands_beside_them_is_not(key: str, reference: str, secret: str) -> None:
    assert shown_value(key, reference) == reference
    assert secret not in shown_value(key, f"{reference}{secret}")
    jaas = 'a.PlainLoginModule required username="me" password="{}";'.format
    assert shown_value("producer.sasl.jaas.config", jaas(reference)) == jaas(reference)
    assert shown_value("producer.sasl.jaas.config", jaas(secret + reference)) == "[hidden]"


@given(
    text=st.sampled_from((
        "https://me:{}@host:80/x?user=you", "https://{}@host", "jdbc:postgresql://h/db?user=me&password={}",
        "jdbc:sqlserver://h;user=me;password={};x=y", "AccountName=n;AccountKey={};EndpointSuffix=e",
        'x.ScramLoginModule required username="u" password="{}";', '{{"user": "u", "password": "{}"}}',
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", "http://${{env:HOST}}/a, http://u:{}@b",
    )),
    secret=SECRET,
)  # fmt: skip
def test_secrets_are_found_in_the_values_of_other_keys(text: str, secret: str) -> None:
    value = text.format(secret)
    seen = shown_value("connection.settings", value)
    assert secret not in seen
    assert "[hidden]" in seen
    assert shown_value("connection.settings", seen) == seen
    assert any(secret in literal_secret for literal_secret in literal_secrets({"connection.settings": value}))


def test_addresses_and_references_in_them_are_shown() -> None:
    for text in ("http://host:80/a?b=c", "a=b;c=d", "https://me:${file:/s:pw}@host", "https://${env:TOKEN}@host/x@y"):
        assert without_users(text) == text
    assert without_users("https://me:pw@${env:HOST}/x") == "https://[hidden]@${env:HOST}/x"


KEYS = st.sampled_from((*PASSWORDS[:4], *OTHERS[:4], "topic", "tasks.max", "connection.url"))
VALUES = st.one_of(
    SECRET, REFERENCE, SECRET.map("https://me:{}@host".format), st.text(string.printable + "\0é", max_size=8)
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), VALUES),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
)


@given(st.dictionaries(KEYS, VALUES))
def test_what_was_shown_can_be_sent_back(config: dict[str, str]) -> None:
    assert kept_values("spec.properties", shown(config), config) == config
    assert shown(shown(config)) == shown(config)


@given(st.dictionaries(KEYS, JSON))
def test_json_that_was_shown_can_be_sent_back(extra: dict[str, object]) -> None:
    assert kept_json("spec.extra", shown_json(extra), extra) == extra


@given(key=st.sampled_from(PASSWORDS), secret=SECRET)
def test_all_below_a_secret_key_is_hidden(key: str, secret: str) -> None:
    fields = {"a": [{key: {"user": secret, "all": [secret, 4711, None, True]}}], "b": secret}
    seen = shown_json(fields)
    assert json.dumps(seen["a"]) == json.dumps(
        [{key: {"user": "[hidden]", "all": ["[hidden]", "[hidden]", None, True]}}]
    )
    assert seen["b"] == secret


def test_hidden_values_that_are_not_stored_are_refused() -> None:
    for key, text in (
        ("ssl.key.password", "[hidden]"),
        ("topic", "[hidden]"),
        ("connection.url", "http://[hidden]@other"),
        ("connection.url", "jdbc:x://h/?password=[hidden]"),
    ):
        with pytest.raises(InvalidArgument) as caught:
            kept_values("spec.properties", {key: text}, {"connection.url": "http://u:pw@host"})
        assert f"spec.properties.{key}" in str(caught.value)
    assert kept_values("spec.properties", {"topic": "a [hidden] door"}, {}) == {"topic": "a [hidden] door"}
