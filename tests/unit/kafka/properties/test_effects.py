"""Each key of docs/client-properties.md has its effect on each client that has it, or a warning that names it, or is
refused."""

from __future__ import annotations

import base64
import dataclasses
import re
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

PAGE = (ROOT / "docs" / "client-properties.md").read_text()
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
"""Where to begin is decided before Java's consumer is given its partitions; how much it reads, by who reads."""


def documented() -> dict[tuple[str, ClientKind], str]:
    return {
        (key, client): use
        for title, text in SECTION.findall(PAGE)
        for key, use in ROW.findall(text)
        for client in CLIENTS[title]
    }


def producer(config: Mapping[str, str]) -> dict[str, Any]:
    given = merged(WORKER, config, "producer")
    made = dataclasses.asdict(producer_options(given, client_id="c", transactional_id="id"))
    arguments = {key: value for key, value in client_arguments(given).items() if key != "retry_backoff_ms"}
    return {**made.pop("settings"), **made, **arguments, "client": None}  # of ours nothing waits by that one


def consumer(config: Mapping[str, str]) -> dict[str, Any]:
    made = sink_consumer_properties(WORKER, config, "s", 0, read_committed=False, zombie_seconds=0)
    return {**made, "group": sink_group(WORKER, config, "s"), "most": most_records(WORKER, config)}


def javas(config: Mapping[str, str]) -> dict[str, Any]:
    """A Java sink's own consumer."""
    made = sink_consumer_properties(WORKER, config, "s", 0, read_committed=False, zombie_seconds=0)
    return dict(own_consumer_properties(WORKER, config, made, 100))


def admin(config: Mapping[str, str]) -> dict[str, Any]:
    return admin_properties(WORKER, config)


MADE = {"producer": producer, "consumer": consumer, "admin": admin}


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in after.items() if before.get(key) != value}


def test_each_key_of_the_page_is_tried_with_each_client() -> None:
    tried = {(one.key, one.client) for one in EFFECTS} | {(k, client) for k in (*LOGINS, *TIMES) for client in MADE}
    uses = documented()
    assert {one for one, use in uses.items() if use != "refused"} == tried
    assert {key for (key, _), use in uses.items() if use == "refused"} == REFUSED.keys()
    assert len(uses) > 200, "the page was read"


@pytest.mark.parametrize("one", EFFECTS, ids=lambda one: f"{one.client}.{one.key}")
def test_a_key_has_its_effect_or_a_warning_names_it(one: Effect) -> None:
    key = f"{one.client}.override.{one.key}"
    config = {"name": "c", key: one.value}
    assert client_faults(config, WORKER) == {}
    seen = changed(MADE[one.client]({}), MADE[one.client](config))
    warned = [note for note in notes(FileStreamSource, config, WORKER) if note.startswith(f"{key}: ignored: ")]
    of_worker = ignored({f"{one.client}.{one.key}": one.value}, standalone=False)
    if one.seen is None:
        assert (seen, len(warned), list(of_worker)) == ({}, 1, [f"{one.client}.{one.key}"])
        return
    assert (seen, warned, of_worker) == (one.seen, [], {})
    worker = {**WORKER, f"{one.client}.{one.key}": one.value}
    assert merged(worker, {}, one.client)[one.key] == one.value, "as a worker's property too"  # type: ignore[arg-type]
    if one.client == "consumer" and one.key not in NOT_OF_JAVAS:
        assert one.key in changed(javas({}), javas(config)), "of a Java sink's own consumer"


def fetched(config: Mapping[str, str]) -> dict[str, Any]:
    """What a mirror reads its source with."""
    whole = {"source.cluster.bootstrap.servers": "h:1", **config}
    given = reader_properties(whole)
    arguments = {key: value for key, value in client_arguments(given).items() if key != "retry_backoff_ms"}
    limits = dataclasses.asdict(FetchSettings.of(given))
    how = {"committed": reads_committed(given), "reset": starts_at(given), "client.id": given.get("client.id")}
    return {**arguments, **limits, **how}


@pytest.mark.parametrize("one", [one for one in EFFECTS if one.client == "consumer"], ids=lambda one: one.key)
def test_a_key_of_a_mirrors_consumer_has_its_effect_or_a_warning_names_it(one: Effect) -> None:
    value = {"isolation.level": "read_uncommitted", "check.crcs": "false"}.get(one.key, one.value)
    key = f"source.consumer.{one.key}"
    seen = changed(fetched({}), fetched({key: value}))
    config = {"name": "c", "connector.class": "MirrorSource", key: value}
    warned = [note for note in notes(MirrorSource, config, WORKER) if note.startswith(f"{key}: ignored: ")]
    assert bool(seen) != bool(warned), (seen, warned)


@pytest.mark.parametrize("key", sorted({one.key for one in EFFECTS}))
def test_a_key_of_a_workers_own_clients_has_its_effect_or_a_warning_names_it(key: str) -> None:
    value = next(one.value for one in EFFECTS if one.key == key)
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
    suites = sorted(one["name"] for one in context.get_ciphers())
    return context.check_hostname, context.minimum_version, context.maximum_version, len(context.get_ca_certs()), suites


def connected(given: Mapping[str, str]) -> dict[str, Any]:
    """What both libraries know of who they are to the brokers and whom they trust, aiokafka's under `aiokafka.`."""
    arguments = client_arguments({**WORKER, **given})
    arguments["ssl_context"] = of_tls(arguments.get("ssl_context"))
    settings = librdkafka_settings(given, "admin")
    token = settings.pop("oauth_cb", None)
    arguments.pop("sasl_oauth_token_provider", None)
    made = {**settings, **{f"aiokafka.{key}": value for key, value in arguments.items()}}
    return made if token is None else {**made, "principal": token("")[2], "token": token("")[0]}


@pytest.mark.parametrize("key", LOGINS)
def test_a_key_of_trust_and_identity_reaches_both_libraries(key: str, stores: Mapping[str, str]) -> None:
    one = LOGINS[key]

    def real(given: Mapping[str, str]) -> dict[str, str]:
        return {name: stores.get(value, value) for name, value in given.items()}

    config = {f"{client}.override.{key}": real({key: one.value})[key] for client in MADE}
    unheeded = {note.partition(".")[0] for note in notes(FileStreamSource, config, WORKER) if "ignored" in note}
    assert unheeded == set(one.unheeded)
    with token_server() as server:
        oauth.allow_urls(server.url)
        base = {name: server.url if value == "@url" else value for name, value in real(one.base).items()}
        given = {**base, key: server.url if one.value == "@url" else real({key: one.value})[key]}
        if one.refused_without:
            with pytest.raises(InvalidArgument, match=re.escape(one.refused_without)):
                connected(base)
        before = {} if one.refused_without else connected(base)
        asked = len(server.asked)
        if one.refused_with:
            with pytest.raises(InvalidArgument, match=re.escape(one.refused_with)):
                connected(given)
            return
        seen = changed(before, connected(given))
        assert set(one.parts) <= seen.keys(), seen.keys()
        if one.form:
            user, form = server.asked[asked]
            assert one.form in f"{base64.b64decode(user.removeprefix('Basic ')).decode()} {form}"


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
        made = tokens({**BEARER, oauth.URL_KEY: server.url, key: value})
        made.current()
    of = timeouts[0] if part in ("connect", "read") else made
    assert getattr(of, part) == expected


@pytest.mark.parametrize("key", REFUSED)
def test_what_is_refused_is_refused_of_connectors_and_workers_by_name(key: str) -> None:
    clients = [client for (name, client), use in documented().items() if (name, use) == (key, "refused")]
    assert clients
    for client in clients:
        own = f"{client}.override.{key}"
        assert key in client_faults({own: REFUSED[key]}, WORKER)[own]
