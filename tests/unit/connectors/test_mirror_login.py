"""What a mirror takes over from its worker: the login for the worker's own brokers, and these as its target."""

from __future__ import annotations

import pytest

from keelman.connect.records import TopicPartition
from keelman.connectors.mirror.config import admin_properties, client_properties, source_keys
from keelman.connectors.mirror.login import KINDS, SIDES, completed
from keelman.connectors.mirror.policy import IDENTITY_POLICY, TopicChoice
from keelman.connectors.mirror.source import MirrorSource
from keelman.connectors.mirror.topics import MirrorTopics
from keelman.kafka.properties.keys import SECURITY
from keelman.worker.asking.connector_class import tasks_of

LOGIN = {"security.protocol": "SSL", "ssl.keystore.key": "the-key", "sasl.jaas.config": "the-password"}
WORKER = {
    "bootstrap.servers": "b1:9092, B2:9092",
    "config.storage.topic": "conf.a",
    "offset.storage.topic": "offs",
    "status.storage.topic": "stat",
    "linger.ms": "5",
    **LOGIN,
}
OWN, OTHER = "SSL://b2:9092", "there:9092"


def config(source: str = OTHER, target: str | None = OTHER, **more: str) -> dict[str, str]:
    properties = {"name": "m", "source.cluster.alias": "us", "source.cluster.bootstrap.servers": source}
    if target is not None:
        properties["target.cluster.bootstrap.servers"] = target
    return properties | {key.replace("__", "."): value for key, value in more.items()}


def logins(mirror: dict[str, str], worker: dict[str, str] = WORKER) -> set[tuple[str, str]]:
    """The clients that have any of the worker's security properties, as (side, kind)."""
    new = completed(mirror, worker)
    return {
        (side, kind)
        for side in SIDES
        for kind in KINDS
        if any(value in LOGIN.values() for value in client_properties(new, side, kind).values())
    }


SOURCE, TARGET = ({(side, kind) for kind in KINDS} for side in SIDES)


@pytest.mark.parametrize(
    ("mirror", "expected"),
    [
        (config(OWN, OTHER), SOURCE),
        (config(OTHER, "b1:9092,b2:9092"), TARGET),
        (config(OTHER, None), TARGET),
        (config(OTHER, " "), TARGET),
        (config(OWN, OWN), SOURCE | TARGET),
        (config(OTHER, OTHER), set()),
    ],
)
def test_clients_of_the_workers_own_brokers_log_in_as_the_worker(mirror: dict[str, str], expected: object) -> None:
    assert logins(mirror) == expected
    new = completed(mirror, WORKER)
    for side, kind in logins(mirror):
        properties = client_properties(new, side, kind)
        assert {key: value for key, value in properties.items() if key.startswith(SECURITY)} == LOGIN


@pytest.mark.parametrize(
    "mirror",
    [
        config("b1:9092,there:9092"),
        config("b1:9093"),
        config("b1"),
        config("b1:9092.there:9092"),
        config("there:9092@b1:9092"),
        config(""),
        config(OTHER, None, producer__override__bootstrap__servers=OTHER),
    ],
)
def test_no_other_address_gets_the_login(mirror: dict[str, str]) -> None:
    assert logins(mirror) == set()


def test_a_client_that_is_led_to_other_brokers_gets_no_login() -> None:
    led = config(OWN, OTHER, source__consumer__bootstrap__servers=OTHER, admin__bootstrap__servers=OTHER)
    assert logins(led) == {("source", "producer")}


def test_a_side_that_sets_security_properties_keeps_its_own() -> None:
    for key in ("source.cluster.sasl.mechanism", "source.admin.ssl.truststore.location", "consumer.security.protocol"):
        assert logins(config(OWN, OTHER) | {key: "x"}) == set(), key
    assert logins(config(OWN, OWN) | {"source.cluster.security.protocol": "x"}) == TARGET


def test_properties_of_the_workers_clients_count_where_they_call_its_brokers() -> None:
    worker = {**WORKER, "consumer.ssl.keystore.key": "another", "producer.bootstrap.servers": OTHER}
    worker["producer.sasl.jaas.config"] = "password-of-others"
    new = completed(config(OWN, OTHER), worker)
    assert client_properties(new, "source", "consumer")["ssl.keystore.key"] == "another"
    assert client_properties(new, "source", "producer")["sasl.jaas.config"] == "the-password"


def test_the_target_is_the_workers_own_cluster_by_default() -> None:
    assert admin_properties(completed(config(OTHER, None), WORKER), "target")["bootstrap.servers"] == "b1:9092, B2:9092"
    named = config(OTHER, None, replication__policy__class=IDENTITY_POLICY)
    own = {**named, "source.cluster.bootstrap.servers": "b1:9092"}
    assert not MirrorSource.validate(completed(named, WORKER))
    assert MirrorSource.validate(completed(own, WORKER)), "its topics would be copied to themselves"


def test_the_workers_storage_topics_are_never_mirrored_whatever_their_names() -> None:
    topics = ["conf.a", "offs", "stat", "confXa", "orders", "mm2.x.internal"]

    def chosen(mirror: dict[str, str]) -> list[str]:
        return list(filter(TopicChoice(source_keys().parse(completed(mirror, WORKER))).wanted, topics))

    assert chosen(config(OWN, OTHER)) == ["confXa", "orders"]
    assert chosen(config(OWN, OTHER, topics__exclude="orders")) == ["confXa"]
    assert chosen(config(OTHER, None)) == [topic for topic in topics if topic != "mm2.x.internal"]
    assert chosen(config(OTHER, None, replication__policy__class=IDENTITY_POLICY)) == ["confXa", "orders"]


def test_stored_tasks_have_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MirrorTopics, "partitions", lambda _self: [TopicPartition("orders", 0)])
    mirror = config(OWN, None)
    (task,) = tasks_of(MirrorSource, mirror, WORKER)
    assert task == {
        **mirror,
        "task.assigned.partitions": "orders-0",
        "task.index": "0",
        "task.class": f"{MirrorSource.names[0].removesuffix('Connector')}Task",
    }
    (excluding,) = tasks_of(MirrorSource, {**mirror, "topics.exclude": "x"}, WORKER)
    assert excluding["topics.exclude"] == "x"
