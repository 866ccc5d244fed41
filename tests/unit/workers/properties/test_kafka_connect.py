"""Properties are refused for a worker of Apache Kafka Connect if Connect itself refuses them."""

import json

import pytest

from keelman.workers.properties.kafka_connect import KEYS, refusals
from support.places import RECORDED_FOLDER
from support.worker_properties import OF_A_GROUP

FACTS = json.loads((RECORDED_FOLDER / "data" / "worker_facts.json").read_text())
TYPED = ("INT", "LONG", "SHORT", "BOOLEAN", "DOUBLE")


def said(key: str, value: str) -> list[str]:
    properties = {**OF_A_GROUP, "session.timeout.ms": "2147483647", key: value}
    return [refusal.description for refusal in refusals(properties, https=False) if refusal.field == key]


@pytest.mark.parametrize("key", FACTS["values"])
def test_each_value_is_judged_as_by_connect(key: str) -> None:
    values = FACTS["values"][key]
    assert [value for value in values["taken"] if said(key, value)] == []
    assert [value for value in values["refused"] if not said(key, value)] == []


def test_all_keys_that_have_a_type_or_bounds_are_judged() -> None:
    mine = {key.name: key.type.name for key in KEYS}
    theirs = {name: kind for name, (kind, _) in FACTS["keys"].items() if kind in TYPED}
    assert {name: kind for name, kind in mine.items() if kind != "STRING"} == theirs
    assert mine.keys() <= FACTS["keys"].keys()


@pytest.mark.parametrize(
    ("fields", "key", "text"),
    [
        ({"group.id": " "}, "group.id", "group.id is missing"),
        ({"config.storage.topic": "a b"}, "config.storage.topic", "a topic name"),
        ({"heartbeat.interval.ms": "10000"}, "heartbeat.interval.ms", "less than session.timeout.ms (10000)"),
        ({"session.timeout.ms": "3000"}, "heartbeat.interval.ms", "less than session.timeout.ms (3000)"),
        (
            {"inter.worker.signature.algorithm": "HmacSHA512"},
            "inter.worker.signature.algorithm",
            "one of those in inter.worker.verification.algorithms: HmacSHA256",
        ),
    ],
)
def test_what_ends_it_before_it_answers(fields: dict[str, str], key: str, text: str) -> None:
    (refusal,) = refusals({**OF_A_GROUP, **fields}, https=False)
    assert refusal.field == key
    assert text in refusal.description


def test_what_only_its_host_knows_is_taken() -> None:
    fields = {
        "key.converter": "com.example.Own", "config.providers": "vault", "session.timeout.ms": "${vault:/a:b}",
        "config.providers.vault.class": "com.example.Vault", "plugin.path": "/not/here", "acme.own": "x",
        "ssl.keystore.location": "/not/here", "producer.linger.ms": "soon",
    }  # fmt: skip
    assert refusals({**OF_A_GROUP, **fields}, https=True) == ()


def test_https_needs_a_certificate() -> None:
    (missing,) = refusals(OF_A_GROUP, https=True)
    assert missing.description == "ssl.keystore.location is missing: an https listener needs a key and a certificate"
    store = "listeners.https.ssl.keystore."
    assert [refusal.field for refusal in refusals({**OF_A_GROUP, f"{store}type": "JKS"}, https=True)] == [
        f"{store}location"
    ]
    assert refusals({**OF_A_GROUP, f"{store}location": "${file:/a:b}"}, https=True) == ()
