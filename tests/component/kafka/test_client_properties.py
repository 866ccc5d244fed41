"""Java's client properties against a real broker with every kind of listener, with both client libraries."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from keelman.engine.failure import BROKER_REFUSED, judge_kafka
from keelman.kafka.clients import admin_client, wait_for_brokers
from keelman.kafka.leaders.client import LeaderClient
from keelman.kafka.properties.settings import librdkafka_settings
from keelman.kafka.security.jaas import OAUTHBEARER, PLAIN, SCRAM
from keelman.kafka.security.oauth import URL_KEY, allow_urls
from keelman.model.errors import Unauthenticated, Unavailable
from support.brokers.secure_broker import SECRET, USER, SecureBroker, secure_broker
from support.certificates import PASSWORD, as_jks
from support.servers.token_server import token_server

Properties = dict[str, str]
ANSWER_SECONDS = 300.0


class Place(NamedTuple):
    """The broker, and the stores that its clients have."""

    broker: SecureBroker
    trust_jks: Properties
    trust_pkcs12: Properties
    trust_pem: Properties
    key_pkcs12: Properties
    key_pem: Properties
    key_jks: Properties
    key_ended: Properties

    def at(self, listener: str, *parts: Properties, **more: str) -> Properties:
        fields = {"bootstrap.servers": self.broker.at(listener)}
        for part in parts:
            fields |= part
        return {**fields, **{k.replace("_", "."): v for k, v in more.items()}}


@pytest.fixture(scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder: Path = tmp_path_factory.mktemp("secure")
    async with secure_broker(folder) as broker:
        me = broker.authority.issue("me")
        trust, key = broker.authority.write_trust(folder / "trust.p12"), me.write_pkcs12(folder / "me.p12")
        trust_jks, key_jks = as_jks(trust, folder / "trust.jks"), as_jks(key, folder / "me.jks")

        def store(kind: str, file: Path) -> Properties:
            return {f"ssl.{kind}store.location": str(file), f"ssl.{kind}store.password": PASSWORD}

        yield Place(
            broker,
            store("trust", trust_jks),
            store("trust", trust),
            {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": broker.authority.pem},
            store("key", key),
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": me.key_pem,
                "ssl.keystore.certificate.chain": me.chain_pem,
            },
            store("key", key_jks),
            store("key", broker.authority.issue("me", ended=True).write_pkcs12(folder / "ended.p12")),
        )


def sasl(mechanism: str, module: str = SCRAM, secret: str = SECRET, protocol: str = "SASL_PLAINTEXT") -> Properties:
    return {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{USER}" password="{secret}";',
    }


def bearer(**options: str) -> Properties:
    options_text = " ".join(f'{key}="{value}"' for key, value in options.items())
    return {**sasl("OAUTHBEARER"), "sasl.jaas.config": f"{OAUTHBEARER} required {options_text};"}


SSL = {"security.protocol": "SSL"}
NO_NAMES = {"ssl.endpoint.identification.algorithm": ""}
GOOD: dict[str, Callable[[Place], Properties]] = {
    "TLS, JKS": lambda p: p.at("TLS", SSL, p.trust_jks),
    "TLS, PEM": lambda p: p.at("TLS", SSL, p.trust_pem),
    "mutual TLS, PKCS12": lambda p: p.at("MUTUAL", SSL, p.trust_pkcs12, p.key_pkcs12, NO_NAMES),
    "mutual TLS, PEM": lambda p: p.at("MUTUAL", SSL, p.trust_pem, p.key_pem, NO_NAMES),
    "mutual TLS, JKS": lambda p: p.at("MUTUAL", SSL, p.trust_jks, p.key_jks, NO_NAMES),
    "PLAIN": lambda p: p.at("SASL", sasl("PLAIN", PLAIN)),
    "SCRAM-SHA-256": lambda p: p.at("SASL", sasl("SCRAM-SHA-256")),
    "SCRAM-SHA-512 over TLS": lambda p: p.at("SASLTLS", sasl("SCRAM-SHA-512", protocol="SASL_SSL"), p.trust_pkcs12),
    "PLAIN over TLS": lambda p: p.at("SASLTLS", sasl("PLAIN", PLAIN, protocol="SASL_SSL"), p.trust_jks),
    "OAUTHBEARER": lambda p: p.at("OAUTH", bearer(unsecuredLoginStringClaim_sub="me")),
}


async def topics_by_both(properties: Properties) -> tuple[set[str], set[str]]:
    """The topics as aiokafka and librdkafka list them; a fetcher's client must find the brokers too."""
    fetching = LeaderClient(properties, client_id="fetching")
    try:
        await fetching.bootstrap()
    finally:
        await fetching.close()
    async with admin_client(properties, client_id="asking") as admin:
        topics = set(await admin.list_topics())
    settings = librdkafka_settings(properties, "admin")
    return topics, set((await asyncio.to_thread(AdminClient(settings).list_topics, timeout=ANSWER_SECONDS)).topics)


@pytest.mark.parametrize("kind", GOOD)
async def test_both_libraries_get_in(place: Place, kind: str) -> None:
    first, other = await topics_by_both(GOOD[kind](place))
    assert first == other


async def test_tokens_of_a_server(place: Place) -> None:
    with token_server() as server:
        allow_urls(server.url)
        value = place.at("OAUTH", bearer(clientId="me", clientSecret="secret")) | {URL_KEY: server.url}
        first, other = await topics_by_both(value)
        assert first == other
        assert len(server.asked) == 1, "all clients of a process share a token"


BAD: dict[str, tuple[Callable[[Place], Properties], str, int]] = {
    "password": (
        lambda p: p.at("SASL", sasl("PLAIN", PLAIN, "wrong")),
        "authentication failed: Authentication failed: Invalid username or password",
        KafkaError._AUTHENTICATION,
    ),
    "SCRAM password": (
        lambda p: p.at("SASL", sasl("SCRAM-SHA-512", secret="wrong")),
        "invalid credentials with SASL mechanism SCRAM-SHA-512",
        KafkaError._AUTHENTICATION,
    ),
    "mechanism": (
        lambda p: p.at("OAUTH", sasl("PLAIN", PLAIN)),
        "the broker does not know this sasl.mechanism",
        KafkaError._AUTHENTICATION,
    ),
    "certificate": (lambda p: p.at("TLS", SSL), "the broker's certificate is not trusted", KafkaError._SSL),
    "host name": (
        lambda p: p.at("MUTUAL", SSL, p.trust_pem, p.key_pem),
        "the broker's certificate is for another host",
        KafkaError._SSL,
    ),
}


@pytest.mark.parametrize("kind", BAD)
async def test_why_brokers_will_not_have_a_client_is_told_at_once(place: Place, kind: str) -> None:
    make, message, code = BAD[kind]
    properties = make(place)
    async with asyncio.timeout(ANSWER_SECONDS):
        with pytest.raises(Unauthenticated, match=message):
            await wait_for_brokers(properties, client_id="refused")
        fetching = LeaderClient(properties, client_id="refused")
        with pytest.raises(Unauthenticated, match=message):
            await fetching.bootstrap()
        await fetching.close()
        error = await asyncio.to_thread(first_error, properties)
    assert (error.code(), judge_kafka(error)) == (code, (BROKER_REFUSED, False)), error.str()


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        ("", r"the broker requires a client certificate, and ssl\.keystore\.location is not set"),
        (
            "key_ended",
            r"refuses the client certificate: .*, it ended on \d{4}-\d\d-\d\d at .* \(see ssl\.keystore\.location\)",
        ),
    ],
)
async def test_what_is_wrong_with_our_certificate_is_told(place: Place, identity: str, message: str) -> None:
    value = place.at("MUTUAL", SSL, place.trust_pem, NO_NAMES, getattr(place, identity) if identity else {})
    with pytest.raises(Unauthenticated, match=message):
        await wait_for_brokers(value, client_id="refused")
    async with asyncio.timeout(ANSWER_SECONDS):
        # With TLS 1.3 the broker's refusal comes after the handshake, and may be lost with the connection.
        error = await asyncio.to_thread(first_error, value, lambda error: judge_kafka(error)[0] != "BROKER_LOST")
    assert judge_kafka(error) == (BROKER_REFUSED, False), error.str()


def tells_why(error: KafkaError) -> bool:
    return bool(error.code() != KafkaError._ALL_BROKERS_DOWN)


def first_error(properties: Properties, counts: Callable[[KafkaError], bool] = tells_why) -> KafkaError:
    """The first relevant problem that librdkafka reports: not only that all brokers are down."""
    errors: list[KafkaError] = []

    def note(error: KafkaError) -> None:
        if counts(error):
            errors.append(error)
            raise KafkaException(error)

    settings: dict[str, Any] = librdkafka_settings(properties, "consumer")
    consumer = Consumer({**settings, "group.id": "refused", "error_cb": note, "log_level": 0})
    try:
        consumer.subscribe(["t"])
        while not errors:
            with contextlib.suppress(KafkaException):
                consumer.poll(0.1)
    finally:
        consumer.close()
    return errors[0]


@pytest.mark.parametrize(("listener", "protocol"), [("TLS", "PLAINTEXT"), ("PLAINTEXT", "SSL"), ("SASL", "PLAINTEXT")])
async def test_a_wrong_protocol_is_suspected(place: Place, listener: str, protocol: str) -> None:
    value = place.at(listener, place.trust_pem, security_protocol=protocol)
    with pytest.raises(Unavailable, match=f"perhaps the listener does not speak {protocol}, see security.protocol"):
        async with admin_client(value, client_id="lost"):
            pass


async def test_a_broker_that_hangs_up_is_told_in_words(place: Place) -> None:
    value = place.at("SASL", security_protocol="PLAINTEXT")
    with pytest.raises(
        Unavailable, match=r"no broker answers at [\d.:]+: a connection was made, and the first question"
    ):
        async with admin_client(value, client_id="lost"):
            pass


async def test_no_token_is_no_fault_of_the_brokers(place: Place) -> None:
    with token_server() as server:
        allow_urls(server.url)
        patience = {"sasl.login.retry.backoff.ms": "10", "sasl.login.retry.backoff.max.ms": "50"}
        value = place.at("OAUTH", bearer(clientId="me", clientSecret="other"), patience) | {URL_KEY: server.url}
        for server.status, kind in ((503, Unavailable), (401, Unauthenticated)):
            with pytest.raises(kind, match=rf"^{URL_KEY}: {server.url} ") as caught:
                async with admin_client(value, client_id="poor"):
                    pass
            assert str(server.status) in caught.value.message
            assert "security.protocol" not in caught.value.message


async def test_a_refused_token_is_no_silent_success(place: Place) -> None:
    value = place.at("OAUTH", bearer(unsecuredLoginStringClaim_sub="me", unsecuredLoginLifetimeSeconds="-100"))
    with pytest.raises(Unauthenticated, match=r"the token is refused: .*invalid_token"):
        async with admin_client(value, client_id="late"):
            pass


async def test_asking_for_a_topic_does_not_make_it(place: Place) -> None:
    """By default brokers create topics that clients query; a worker's topics must be created as it needs them."""
    async with admin_client(place.at("PLAINTEXT"), client_id="asking") as admin:
        assert [topic["error_code"] for topic in await admin.describe_topics(["nowhere"])] == [3]
        assert "nowhere" not in await admin.list_topics()
