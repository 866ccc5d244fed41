"""Java's client properties: the table is complete, and each is used, refused or warned of."""

import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from keelman.connect.config.client_definitions import client_keys
from keelman.connect.config.override_policies import ALLOWED_KEY, POLICY_KEY, refused
from keelman.engine.clients import client_settings, portable, restored, with_token
from keelman.engine.sink.consumer.consumer import sink_consumer_properties
from keelman.kafka.clients import client_arguments
from keelman.kafka.properties.connector_clients import merged, sink_group
from keelman.kafka.properties.faults import client_faults
from keelman.kafka.properties.keys import Choice, Classes, ClientKind, Number, Servers
from keelman.kafka.properties.settings import aiokafka_settings, librdkafka_settings
from keelman.kafka.properties.table import TABLE
from keelman.kafka.security import oauth
from keelman.kafka.security.jaas import OAUTHBEARER, PLAIN, SCRAM
from keelman.model.errors import InvalidArgument, KeelmanError, Unauthenticated, Unavailable
from support.certificates import PASSWORD, Authority
from support.places import RECORDED_FOLDER
from support.servers.token_server import token_server

RECORDED = json.loads((RECORDED_FOLDER / "data" / "clients.json").read_text())
CLIENTS: dict[ClientKind, Any] = {"producer": Producer, "consumer": Consumer, "admin": AdminClient}
EVIL = 'com.sun.security.auth.module.JndiLoginModule required user.provider.url="ldap://x";'
URL = "https://idp.example/token"


def sasl(mechanism: str, jaas: str, **more: str) -> dict[str, str]:
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas, **more}


def test_the_table_has_each_key_of_each_java_client_once() -> None:
    rows = [(row.name, client) for row in TABLE for client in CLIENTS if row.of(client)]
    assert len(rows) == len(set(rows))
    assert set(rows) == {(name, client) for name, key in RECORDED["keys"].items() for client in key["clients"]}
    assert all(row.says for row in TABLE if row.use != "used" or not (row.librdkafka or row.aiokafka))


def test_validation_has_the_same_keys_with_the_types_that_java_gives_them() -> None:
    for client in CLIENTS:
        types = {name: key["type"] for name, key in RECORDED["keys"].items() if client in key["clients"]}
        assert {name: key.type.value for name, key in client_keys(client).items()} == types


@pytest.mark.parametrize(
    ("worker", "connector", "group"),
    [
        ({"group.id": "workers"}, {}, "connect-s"),
        ({}, {"consumer.override.group.id": " mine "}, "mine"),
        ({"consumer.group.id": "all"}, {}, "all"),
        ({"consumer.group.id": "all"}, {"consumer.override.group.id": "mine"}, "mine"),
        ({}, {"consumer.override.group.id": ""}, "connect-s"),
    ],
)
def test_a_sinks_group_is_the_one_that_its_consumers_join(
    worker: dict[str, str], connector: dict[str, str], group: str
) -> None:
    assert sink_group(worker, connector, "s") == group
    joined = sink_consumer_properties(worker, connector, "s", 0, read_committed=True, zombie_seconds=0)
    assert joined["group.id"] == group


@pytest.mark.parametrize("client", CLIENTS)
def test_librdkafka_takes_whatever_java_would(client: ClientKind) -> None:
    for row in TABLE:
        if not (row.librdkafka and row.of(client)):
            continue
        texts = ["1"]
        if isinstance(row.value, Number):
            texts = ["-1", "0", "1", "2147483647"]
        elif isinstance(row.value, Servers):
            texts = ["h:1", "PLAINTEXT://h:1,[::1]:2"]
        elif isinstance(row.value, Choice | Classes):
            texts = list(row.value.legal)
        for text in texts:
            settings = librdkafka_settings({row.name: text}, client)
            assert row.librdkafka in settings
            CLIENTS[client]({"group.id": "g", **settings} if client == "consumer" else settings, logger=_silent())


def _silent() -> Any:
    logger = logging.getLogger("silent")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def test_a_protocol_in_front_of_an_address_is_passed_over_as_in_java() -> None:
    fields = {"bootstrap.servers": "PLAINTEXT://a:1, http://[::1]:2,b_c.d:3"}
    assert client_arguments(fields)["bootstrap_servers"] == ["a:1", "[::1]:2", "b_c.d:3"]
    assert librdkafka_settings(fields, "producer")["bootstrap.servers"] == "a:1,[::1]:2,b_c.d:3"


def test_values_that_read_otherwise_elsewhere() -> None:
    java = {
        "auto.offset.reset": "none",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor, "
        "org.apache.kafka.clients.consumer.CooperativeStickyAssignor,"
        "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "fetch.max.wait.ms": "70",
        "max.poll.interval.ms": "2147483647",
        "receive.buffer.bytes": "-1",
        "interceptor.classes": "io.example.Interceptor",
        "metadata.max.age.ms": "2000",
        "no.such.key": "x",
    }
    assert librdkafka_settings(java, "consumer") == {
        "auto.offset.reset": "error",
        "partition.assignment.strategy": "range,roundrobin",
        "fetch.wait.max.ms": "70",
        "max.poll.interval.ms": "86400000",
        "socket.receive.buffer.bytes": "0",
        "topic.metadata.refresh.interval.ms": "2000",
        "metadata.max.age.ms": "6000",
    }
    assert librdkafka_settings({"buffer.memory": "33554432", "acks": "-1"}, "producer") == {
        "queue.buffering.max.kbytes": "32768"
    }
    assert aiokafka_settings({"connections.max.idle.ms": "-1", "retry.backoff.ms": "7"}) == {
        "connections_max_idle_ms": None,
        "retry_backoff_ms": 7,
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"auto.offset.reset": "by_duration:PT1H"}, "auto.offset.reset: 'by_duration:PT1H' is not legal: one of earli"),
        ({"fetch.min.bytes": "many"}, "fetch.min.bytes: 'many' is not legal: a whole number"),
        ({"partition.assignment.strategy": "io.x.Own"}, "one or more of RangeAssignor"),
        ({"partition.assignment.strategy": "io.x.RangeAssignor"}, "of org.apache.kafka.clients.consumer"),
        ({"sasl.login.class": "x.Y"}, "sasl.login.class: 'x.Y' is refused: no Java code runs here"),
        ({"security.protocol": "TLS"}, "security.protocol: 'TLS' is not legal: one of PLAINTEXT"),
        ({"security.protocol": "SASL_SSL"}, r"'GSSAPI' \(Kerberos\), Java's default, is not supported"),
        (sasl("SCRAM-SHA-1", ""), "sasl.mechanism: 'SCRAM-SHA-1' is not legal"),
        (sasl("PLAIN", ""), "sasl.jaas.config is missing: PLAIN needs"),
        (sasl("PLAIN", f'{PLAIN} required username="a";'), "sasl.jaas.config: password is missing"),
        (sasl("PLAIN", f"{OAUTHBEARER} required;"), "PLAIN needs .*PlainLoginModule, not .*OAuthBearerLoginModule"),
        (sasl("SCRAM-SHA-256", f'{SCRAM} required username=a password=b tokenauth="true";'), "delegation tokens"),
        (sasl("PLAIN", EVIL), "JndiLoginModule is not allowed"),
        (sasl("OAUTHBEARER", f"{OAUTHBEARER} required;"), "unsecuredLoginStringClaim_sub is missing"),
        (
            sasl("OAUTHBEARER", f"{OAUTHBEARER} required;", **{oauth.URL_KEY: URL}),
            f"Invalid value {URL} for .*: The URL cannot be accessed due to restrictions. Add it to keelman",
        ),
    ],
)
def test_what_cannot_be_used_is_told_for_both_libraries(fields: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        librdkafka_settings(fields, "consumer")
    if fields.keys() & {"security.protocol", "sasl.login.class"}:
        with pytest.raises(InvalidArgument, match=message):
            client_arguments({"bootstrap.servers": "a:1", **fields})


def test_who_one_is_goes_to_both_libraries(tmp_path: Path) -> None:
    authority = Authority()
    me = authority.issue("me")
    trust, key = authority.write_trust(tmp_path / "trust.p12"), me.write_pkcs12(tmp_path / "key.p12")
    scram = sasl("SCRAM-SHA-512", f'{SCRAM} required username="a" password="b\\"c";') | {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": str(key),
        "ssl.keystore.password": PASSWORD,
        "ssl.endpoint.identification.algorithm": "",
    }
    settings = librdkafka_settings(scram, "admin")
    assert settings == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "a",
        "sasl.password": 'b"c',
        "ssl.ca.pem": authority.pem,
        "ssl.key.pem": me.key_pem,
        "ssl.certificate.pem": me.chain_pem,
        "ssl.endpoint.identification.algorithm": "none",
    }
    AdminClient(settings, logger=_silent())
    arguments = client_arguments(scram)
    assert arguments["sasl_plain_password"] == 'b"c'
    assert not arguments["ssl_context"].present.check_hostname
    assert client_arguments(dict(scram))["ssl_context"].present is arguments["ssl_context"].present, "read once"


def test_a_clients_own_properties_go_over_the_workers_and_credentials_to_their_brokers_only() -> None:
    worker = {
        "bootstrap.servers": "a:1",
        "group.id": "workers",
        "client.id": "worker",
        "ssl.truststore.location": "/ca",
        **sasl("PLAIN", "secret"),
        "producer.linger.ms": "7",
        "producer.acks": "1",
    }
    properties = merged(worker, {"producer.override.acks": "all", "consumer.override.acks": "x"}, "producer")
    assert properties == {
        "bootstrap.servers": "a:1",
        "ssl.truststore.location": "/ca",
        **sasl("PLAIN", "secret"),
        "linger.ms": "7",
        "acks": "all",
    }
    elsewhere = merged(worker, {"producer.override.bootstrap.servers": "evil:1"}, "producer")
    assert not any(key.startswith(("sasl.", "security.")) for key in elsewhere)


def test_faults_of_a_configuration() -> None:
    worker = {"bootstrap.servers": "a:1", oauth.ALLOWED_KEY: f"{URL}, https://other"}
    config = {
        "name": "c",
        "producer.override.batch.size": "big",
        "producer.override.partitioner.class": "x.Own",
        "consumer.override.sasl.jaas.config": EVIL,
        "source.consumer.sasl.jaas.config": EVIL,
        "admin.override.sasl.jaas.config": "${file:/s:jaas}",
        "target.cluster.sasl.oauthbearer.token.endpoint.url": "http://169.254.169.254/",
        "source.cluster.sasl.oauthbearer.token.endpoint.url": URL,
        "transforms": None,
    }
    actual_client_faults = client_faults(config, worker)
    assert sorted(actual_client_faults) == [
        "consumer.override.sasl.jaas.config",
        "producer.override.batch.size",
        "producer.override.partitioner.class",
        "source.consumer.sasl.jaas.config",
        "target.cluster.sasl.oauthbearer.token.endpoint.url",
    ]
    assert (
        "records of a key would go to other partitions" in actual_client_faults["producer.override.partitioner.class"]
    )
    assert client_faults({"producer.override.linger.ms": "5", "consumer.override.fetch.min.bytes": "1"}, worker) == {}


@pytest.mark.parametrize("name", RECORDED["policies"])
def test_policies_say_what_connect_says(name: str) -> None:
    recorded: Mapping[str, list[str]] = RECORDED["policies"][name]
    java = f"org.apache.kafka.connect.connector.policy.{name}ConnectorClientConfigOverridePolicy"
    for written in (name, f"{name}ConnectorClientConfigOverridePolicy", java):
        worker = {POLICY_KEY: written, ALLOWED_KEY: "acks, client.id"}
        assert {key: [text] if (text := refused(worker, key)) else [] for key in recorded} == recorded


def test_settings_that_go_to_another_process_make_tokens_there() -> None:
    java = sasl("OAUTHBEARER", f'{OAUTHBEARER} required unsecuredLoginStringClaim_sub="me";')
    settings = client_settings(java | {"fetch.min.bytes": "7"}, "consumer")
    texts = portable(settings, java)
    assert all(isinstance(value, str) for value in texts.values())
    again = restored(texts)
    token, ends, principal, extensions = again.pop("oauth_cb")("")
    assert again == {k: v for k, v in settings.items() if k != "oauth_cb"}
    assert (principal, extensions) == ("me", {})
    assert token.count(".") == 2
    assert time.time() < ends <= time.time() + 3600
    assert restored(portable({"client.id": "x"}, java)) == {"client.id": "x"}


@pytest.mark.parametrize(("status", "kind"), [(503, Unavailable), (401, Unauthenticated)])
def test_a_client_is_not_made_without_a_token(status: int, kind: type[KeelmanError]) -> None:
    with token_server() as server:
        oauth.allow_urls(server.url)
        server.status = status
        java = sasl("OAUTHBEARER", f'{OAUTHBEARER} required clientId="me" clientSecret="secret";')
        settings = client_settings(java | {oauth.URL_KEY: server.url}, "consumer")
        assert server.asked == [], "not before a client is made"
        with pytest.raises(kind, match=f"answered {status}"):
            with_token(settings)
    assert with_token({"client.id": "x"}) == {"client.id": "x"}
