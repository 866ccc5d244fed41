"""Java sinks behind brokers that require a login: Kafka's own consumer has the properties as users write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.brokers.secure_broker import SECRET, USER, SecureBroker
from support.certificates import PASSWORD
from support.java.kit import needs_java
from support.java.scripted_sink import Scripted
from support.kafka.topics import create_topic
from support.servers.token_server import token_server
from support.waiting import until

pytestmark = [pytest.mark.component, needs_java()]
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture
def scripted(broker: SecureBroker, name: str, classes: Path, tmp_path: Path) -> Scripted:
    """A task whose records are produced without a login."""
    create_topic(broker.at("PLAINTEXT"), name)
    scripted_sink = Scripted(broker.at("PLAINTEXT"), name, classes, tmp_path)
    scripted_sink.send(["v0", "v1"])
    return scripted_sink


def copies(scripted: Scripted, worker: dict[str, str]) -> None:
    """Asserts that a task with these properties copies, commits and ends."""
    with scripted.hosted(worker=worker) as process:
        scripted.until_put(process, ["v0", "v1"])
        until(lambda: scripted.group() == 2, "committed")
        scripted.stopped(process)


def login(secret: str) -> str:
    return f'{SCRAM} required username="{USER}" password="{secret}";'


def scram(broker: SecureBroker, secret: str) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.at("SASLTLS"),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": login(secret),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": broker.authority.pem,
    }


def test_a_password_over_tls(scripted: Scripted, broker: SecureBroker) -> None:
    copies(scripted, scram(broker, SECRET))


def test_a_certificate_to_a_host_of_another_name(scripted: Scripted, broker: SecureBroker, tmp_path: Path) -> None:
    key = broker.authority.issue("sink", "127.0.0.1").write_pkcs12(tmp_path / "sink.p12")
    trust = broker.authority.write_trust(tmp_path / "trust.p12")
    worker = {
        "bootstrap.servers": broker.at("MUTUAL"),
        "security.protocol": "SSL",
        "ssl.endpoint.identification.algorithm": "",
    }
    for store, place in (("keystore", key), ("truststore", trust)):
        worker |= {
            f"ssl.{store}.{k}": v for k, v in (("type", "PKCS12"), ("location", str(place)), ("password", PASSWORD))
        }
    copies(scripted, worker)


def test_a_token_of_its_own(scripted: Scripted, broker: SecureBroker) -> None:
    worker = {
        "bootstrap.servers": broker.at("OAUTH"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f'{OAUTH} required unsecuredLoginStringClaim_sub="alice";',
    }
    copies(scripted, worker)


def test_a_token_of_a_server_that_the_worker_allows(scripted: Scripted, broker: SecureBroker) -> None:
    with token_server() as server:
        server.status = 401
        allowed = {"keelman.oauthbearer.allowed.urls": server.url}
        with scripted.hosted(worker={**broker.with_tokens_of(server.url), **allowed}) as process:
            until(lambda: server.asked, "it is asked for a token")
            process.kill()


def test_a_wrong_password_and_a_broker_that_is_not_trusted_fail_the_task_for_good(
    scripted: Scripted, broker: SecureBroker
) -> None:
    with scripted.hosted(worker=scram(broker, "wrong")) as process:
        last = scripted.ends(process)
    assert (last["state"], last["reason"]) == ("FAILED", "BROKER_REFUSED"), last
    untrusting = {k: v for k, v in scram(broker, SECRET).items() if not k.startswith("ssl.")}
    with scripted.hosted(worker=untrusting) as process:
        last = scripted.ends(process)
    assert (last["state"], last["reason"]) == ("FAILED", "BROKER_REFUSED"), last


def test_a_keystore_that_does_not_open_fails_the_task_with_its_property(
    scripted: Scripted, broker: SecureBroker, tmp_path: Path
) -> None:
    key = broker.authority.issue("sink", "127.0.0.1").write_pkcs12(tmp_path / "sink.p12")
    store = {"type": "PKCS12", "location": str(key), "password": "wrong"}
    worker = {"bootstrap.servers": broker.at("MUTUAL"), "security.protocol": "SSL"}
    with scripted.hosted(worker=worker | {f"ssl.keystore.{name}": value for name, value in store.items()}) as process:
        last = scripted.ends(process)
    assert last["state"] == "FAILED", last
    assert "ssl.keystore.password: the password does not open" in last["message"], last
