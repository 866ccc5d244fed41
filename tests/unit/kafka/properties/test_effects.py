"""Each key of docs/client-properties.md affects each client that has it, or a warning names it, or it is refused."""

from __future__ import annotations

import base64
import dataclasses
import re
import runpy
from collections.abc import Mapping
from typing import Any, get_args

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from keelman.connectors.file.source import FileStreamSource
from keelman.connectors.mirror.config import reader_properties
from keelman.connectors.mirror.reader import starts_at
from keelman.connectors.mirror.source import MirrorSource
from keelman.connectors.validation.unknown_keys import notes
from keelman.engine.clients import admin_properties
from keelman.engine.producing.producer_options import producer_options
from keelman.engine.sink.consumer.consumer import most_records, own_consumer_properties, sink_consumer_properties
from keelman.kafka.clients import client_arguments
from keelman.kafka.fetching.isolation import reads_committed
from keelman.kafka.fetching.settings import FetchSettings
from keelman.kafka.properties.connector_clients import merged, sink_group
from keelman.kafka.properties.faults import client_faults
from keelman.kafka.properties.keys import ClientKind
from keelman.kafka.properties.settings import librdkafka_settings
from keelman.kafka.security import oauth
from keelman.kafka.security.tls_sasl import tokens
from keelman.model.errors import InvalidArgument
from keelman.runtime.tls.followed import FollowedContext
from keelman.workers.properties.known_properties import USED, ignored
from support.certificates import PASSWORD, Authority
from support.kafka.client_effects import EFFECTS, REFUSED, Effect
from support.kafka.login_effects import BEARER, LOGINS, TIMES
from support.places import ROOT
from support.servers.token_server import token_server

PAGE = runpy.run_path(str(ROOT / "tools" / "document_clients.py"))["tables"]()
WORKER = {"bootstrap.servers": "h:1"}
SECTION = re.compile(r"^## Of (.+?)\n\n(.*?)(?=\n## |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([^`]+)` \| (used|ignored|refused) \|", re.MULTILINE)
CLIENTS: dict[str, tuple[ClientKind, ...]] = {
    "all clients": get_args(ClientKind),
    "producers and consumers": ("producer", "consumer"),
    "producers": ("producer",),
    "consumers": ("consumer",),
    "consumers and admin clients": ("consumer", "admin"),
    "admin clients": ("admin",),
}
NOT_OF_JAVAS = {"auto.offset.reset", "max.poll.records"}
"""The beginning is chosen before Java's consumer gets its partitions; the amount read, by its reader."""


def documented() -> dict[tuple[str, ClientKind], str]:
    return {
        (key, client): use
        for title, text in SECTION.findall(PAGE)
        for key, use in ROW.findall(text)
        for client in CLIENTS[title]
    }


def producer(config: Mapping[str, str]) -> dict[str, Any]:
    value = merged(WORKER, config, "producer")
    options = dataclasses.asdict(producer_options(value, client_id="c", transactional_id="id"))
    arguments = {key: value for key, value in client_arguments(value).items() if key != "retry_backoff_ms"}
    return {**options.pop("settings"), **options, **arguments, "client": None}  # no client of ours waits by this key


def consumer(config: Mapping[str, str]) -> dict[str, Any]:
    properties = sink_consumer_properties(WORKER, config, "s", 0, read_committed=False, zombie_seconds=0)
    return {
        **properties,
        "group": sink_group(WORKER, config, "s"),
        "most": most_records(WORKER, config),
    }


def javas(config: Mapping[str, str]) -> dict[str, Any]:
    """A Java sink's own consumer."""
    properties = sink_consumer_properties(WORKER, config, "s", 0, read_committed=False, zombie_seconds=0)
    return dict(own_consumer_properties(WORKER, config, properties, 100))


def admin(config: Mapping[str, str]) -> dict[str, Any]:
    return admin_properties(WORKER, config)


MADE = {"producer": producer, "consumer": consumer, "admin": admin}


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in after.items() if before.get(key) != value}


def test_each_key_of_the_page_is_tried_with_each_client() -> None:
    tried = {(effect.key, effect.client) for effect in EFFECTS} | {
        (k, client) for k in (*LOGINS, *TIMES) for client in MADE
    }
    uses = documented()
    assert {name for name, use in uses.items() if use != "refused"} == tried
    assert {key for (key, _), use in uses.items() if use == "refused"} == REFUSED.keys()
    assert len(uses) > 200, "the page was read"


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda value: f"{value.client}.{value.key}")
def test_a_key_has_its_effect_or_a_warning_names_it(effect: Effect) -> None:
    key = f"{effect.client}.override.{effect.key}"
    config = {"name": "c", key: effect.value}
    assert client_faults(config, WORKER) == {}
    seen = changed(MADE[effect.client]({}), MADE[effect.client](config))
    warned = [note for note in notes(FileStreamSource, config, WORKER) if note.startswith(f"{key}: ignored: ")]
    of_worker = ignored({f"{effect.client}.{effect.key}": effect.value}, standalone=False)
    if effect.seen is None:
        assert (seen, len(warned), list(of_worker)) == ({}, 1, [f"{effect.client}.{effect.key}"])
        return
    assert (seen, warned, of_worker) == (effect.seen, [], {})
    worker = {**WORKER, f"{effect.client}.{effect.key}": effect.value}
    assert merged(worker, {}, effect.client)[effect.key] == effect.value, "as a worker's property too"  # type: ignore[arg-type]
    if effect.client == "consumer" and effect.key not in NOT_OF_JAVAS:
        assert effect.key in changed(javas({}), javas(config)), "of a Java sink's own consumer"


def fetched(config: Mapping[str, str]) -> dict[str, Any]:
    """The settings with which a mirror reads its source."""
    whole = {"source.cluster.bootstrap.servers": "h:1", **config}
    properties = reader_properties(whole)
    arguments = {key: value for key, value in client_arguments(properties).items() if key != "retry_backoff_ms"}
    limits = dataclasses.asdict(FetchSettings.of(properties))
    how = {
        "committed": reads_committed(properties),
        "reset": starts_at(properties),
        "client.id": properties.get("client.id"),
    }
    return {**arguments, **limits, **how}


@pytest.mark.parametrize(
    "effect", [effect for effect in EFFECTS if effect.client == "consumer"], ids=lambda value: value.key
)
def test_a_key_of_a_mirrors_consumer_has_its_effect_or_a_warning_names_it(effect: Effect) -> None:
    value = {"isolation.level": "read_uncommitted", "check.crcs": "false"}.get(effect.key, effect.value)
    key = f"source.consumer.{effect.key}"
    seen = changed(fetched({}), fetched({key: value}))
    config = {"name": "c", "connector.class": "MirrorSource", key: value}
    warned = [note for note in notes(MirrorSource, config, WORKER) if note.startswith(f"{key}: ignored: ")]
    assert bool(seen) != bool(warned), (seen, warned)


@pytest.mark.parametrize("key", sorted({effect.key for effect in EFFECTS}))
def test_a_key_of_a_workers_own_clients_has_its_effect_or_a_warning_names_it(key: str) -> None:
    value = next(effect.value for effect in EFFECTS if effect.key == key)
    if key in USED or key == "client.dns.lookup":
        return
    seen = changed(client_arguments(WORKER), client_arguments({**WORKER, key: value}))
    assert bool(seen) != (key in ignored({key: value}, standalone=False)), seen


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder, authority = tmp_path_factory.mktemp("stores"), Authority()
    me = authority.issue("me")
    locked = me.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode()))
    return {
        "@trust": str(authority.write_trust(folder / "trust.p12")),
        "@key": str(me.write_pkcs12(folder / "key.p12")),
        "@trust pem": authority.pem,
        "@key pem": me.key_pem,
        "@locked pem": locked.decode(),
        "@chain pem": me.chain_pem,
        "@password": PASSWORD,
    }


def of_tls(followed: FollowedContext | None) -> Any:
    if followed is None:
        return None
    context = followed.present
    suites = sorted(cipher["name"] for cipher in context.get_ciphers())
    return context.check_hostname, context.minimum_version, context.maximum_version, len(context.get_ca_certs()), suites


def connected(fields: Mapping[str, str]) -> dict[str, Any]:
    """Both libraries' settings of identity and trust, aiokafka's under `aiokafka.`."""
    arguments = client_arguments({**WORKER, **fields})
    arguments["ssl_context"] = of_tls(arguments.get("ssl_context"))
    settings = librdkafka_settings(fields, "admin")
    token = settings.pop("oauth_cb", None)
    arguments.pop("sasl_oauth_token_provider", None)
    document = {**settings, **{f"aiokafka.{key}": value for key, value in arguments.items()}}
    return document if token is None else {**document, "principal": token("")[2], "token": token("")[0]}


@pytest.mark.parametrize("key", LOGINS)
def test_a_key_of_trust_and_identity_reaches_both_libraries(key: str, stores: Mapping[str, str]) -> None:
    login = LOGINS[key]

    def real(fields: Mapping[str, str]) -> dict[str, str]:
        return {name: stores.get(value, value) for name, value in fields.items()}

    config = {f"{client}.override.{key}": real({key: login.value})[key] for client in MADE}
    unheeded = {note.partition(".")[0] for note in notes(FileStreamSource, config, WORKER) if "ignored" in note}
    assert unheeded == set(login.unheeded)
    with token_server() as server:
        oauth.allow_urls(server.url)
        base = {name: server.url if value == "@url" else value for name, value in real(login.base).items()}
        fields = {**base, key: server.url if login.value == "@url" else real({key: login.value})[key]}
        if login.refused_without:
            with pytest.raises(InvalidArgument, match=re.escape(login.refused_without)):
                connected(base)
        before = {} if login.refused_without else connected(base)
        requested_len = len(server.asked)
        if login.refused_with:
            with pytest.raises(InvalidArgument, match=re.escape(login.refused_with)):
                connected(fields)
            return
        seen = changed(before, connected(fields))
        assert set(login.parts) <= seen.keys(), seen.keys()
        if login.form:
            user, form = server.asked[requested_len]
            assert login.form in f"{base64.b64decode(user.removeprefix('Basic ')).decode()} {form}"


@pytest.mark.parametrize(
    ("key", "value", "part", "expected"),
    [(key, *rest) for key, rest in TIMES.items()],
)
def test_the_time_of_a_login_is_as_it_is_given(
    monkeypatch: pytest.MonkeyPatch, key: str, value: str, part: str, expected: float
) -> None:
    timeouts: list[httpx.Timeout] = []
    real = httpx.Client

    def client(**arguments: Any) -> httpx.Client:
        timeouts.append(arguments["timeout"])
        return real(**arguments)

    monkeypatch.setattr(httpx, "Client", client)
    with token_server() as server:
        oauth.allow_urls(server.url)
        source = tokens({**BEARER, oauth.URL_KEY: server.url, key: value})
        source.current()
    of = timeouts[0] if part in ("connect", "read") else source
    assert getattr(of, part) == expected


@pytest.mark.parametrize("key", REFUSED)
def test_what_is_refused_is_refused_of_connectors_and_workers_by_name(key: str) -> None:
    clients = [client for (name, client), use in documented().items() if (name, use) == (key, "refused")]
    assert clients
    for client in clients:
        own = f"{client}.override.{key}"
        assert key in client_faults({own: REFUSED[key]}, WORKER)[own]
