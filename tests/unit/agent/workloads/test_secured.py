"""The workloads that start on a node with an unsecured network."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from keelman.agent.settings import Settings
from keelman.agent.trust.broker_certificate import AUTHORITY, KEYSTORE, Certificate
from keelman.agent.trust.secrets import SecretFiles
from keelman.agent.trust.trust import StateLink
from keelman.agent.workloads.secured import HTTPS, commands_for
from keelman.api.node.v1.workload_pb2 import BrokerWorkload, SparkWorkload, WorkerWorkload, Workload, WorkloadSpec
from keelman.model.errors import FailedPrecondition, InvalidArgument, Unavailable
from keelman.rpc.credentials import PemFiles, Pems
from keelman.rpc.membership import MemberFolder
from keelman.runtime.home import Home, write_file
from keelman.workers.properties.basic_auth import EXTENSION
from support.certificates import Authority

AWAY = "10.0.0.2"
PASSWORDS = {"rest.extension.classes": EXTENSION}
CERTIFICATES = {"listeners.https.ssl.client.auth": "required"}


def prepared(tmp_path: Path, trust: str, certificate: Certificate | None = None, **kind: Any) -> Any:
    home = Home(tmp_path)
    [name] = kind
    workload = Workload(name=f"{name}/x/0", node="n1", spec=WorkloadSpec(**kind))
    return commands_for(trust, SecretFiles(home), home.broker_data, certificate)[name](workload, home)


def worker(host: str = AWAY, **fields: Any) -> WorkerWorkload:
    fields.setdefault("https", True)
    return WorkerWorkload(worker_cluster="x", host=host, port=8083, spark_address=f"{host}:7430", **fields)


@pytest.mark.parametrize(
    "spec",
    [
        worker(properties=PASSWORDS),
        worker(properties=CERTIFICATES),
        worker(properties={"ssl.client.auth": "required"}),
        worker(properties=PASSWORDS | {"admin.listeners.https.ssl.client.auth": "required"}, admin_port=8084),
        worker(properties=PASSWORDS, metrics_port=8085),
    ],
)
def test_a_worker_that_asks_who_calls_is_started_with_its_spark_service_on_loopback(
    tmp_path: Path, spec: WorkerWorkload
) -> None:
    command = prepared(tmp_path, HTTPS, worker=spec)
    assert 'spark_address = "127.0.0.1:7430"' in command.files["settings.toml"]
    assert command.ports[0] == (AWAY, 8083)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (worker(https=False, properties=PASSWORDS), "would be plain http: give its cluster https"),
        (worker(), "would authenticate no caller: set passwords for its cluster"),
        (worker(properties={"listeners.https.ssl.client.auth": "requested"}), "would authenticate no caller"),
        (
            worker(properties={"ssl.client.auth": "required", "listeners.https.ssl.keystore.location": "/k"}),
            "would authenticate no caller",
        ),
        (worker(properties=PASSWORDS, admin_port=8084), "the worker's admin listener would authenticate no caller"),
        (worker(properties=PASSWORDS, metrics_port=8085, kafka_connect=True), "metrics of Kafka Connect"),
    ],
)
def test_one_that_would_answer_anybody_is_refused(tmp_path: Path, spec: WorkerWorkload, message: str) -> None:
    with pytest.raises(FailedPrecondition, match=message) as refused:
        prepared(tmp_path, HTTPS, worker=spec)
    assert refused.value.reason == "NOT_SECURED"
    prepared(tmp_path, "mesh", worker=spec)  # the mesh secures it
    here = WorkerWorkload()
    here.CopyFrom(spec)
    here.host = "127.0.0.1"
    prepared(tmp_path, HTTPS, worker=here)


def broker(**fields: Any) -> BrokerWorkload:
    return BrokerWorkload(broker_cluster="x", broker_id=0, host=AWAY, port=9092, voters=f"0@{AWAY}:9093", **fields)


def test_a_broker_that_asks_who_calls_is_started_once_it_has_a_certificate(tmp_path: Path) -> None:
    spec = broker(tls=True, client_certificates=True)
    with pytest.raises(FailedPrecondition, match="no certificate of the installation's CA") as refused:
        prepared(tmp_path, HTTPS, broker=spec)
    assert refused.value.reason == "NO_AUTHORITY"

    authority = Authority()
    issued = authority.issue("brokers", "keelman://broker/n1", AWAY)
    folder = MemberFolder(tmp_path / "trust" / "broker")
    link = StateLink(lambda: Pems(roots=authority.pem.encode()))
    certificate = Certificate(folder, Home(tmp_path).workloads, link, "s:1", "n1", (AWAY,))
    with pytest.raises(Unavailable, match="has not come from the state service at s:1") as waits:
        prepared(tmp_path, HTTPS, certificate, broker=spec)
    assert waits.value.reason == "CERTIFICATE_MISSING"

    folder.write(Pems(issued.chain_pem.encode(), issued.key_pem.encode(), authority.pem.encode()))
    older = Home(tmp_path).workload("broker/old/0") / KEYSTORE
    write_file(older, b"of before")
    certificate.begin()
    command = prepared(tmp_path, HTTPS, certificate, broker=spec)
    assert command.files[KEYSTORE] == issued.key_pem + issued.chain_pem == older.read_text()
    settings = tomllib.loads(command.files["settings.toml"])
    own = Home(tmp_path).workload("broker/x/0")
    assert (settings["tls_keystore"], settings["tls_truststore"]) == (str(own / KEYSTORE), str(own / AUTHORITY))
    assert settings["client_certificates"] == "true"

    with pytest.raises(FailedPrecondition, match=r"for brokers at 10\.0\.0\.9: a gateway or another node"):
        certificate.files("10.0.0.9")
    moved = Certificate(folder, Home(tmp_path).workloads, link, "s:1", "n1", ("10.0.0.9",))
    moved.begin()
    with pytest.raises(Unavailable):
        moved.files("10.0.0.9")  # the address has changed, and the certificate names another


@pytest.mark.parametrize(
    ("spec", "message"), [(broker(), "speaks plain text"), (broker(tls=True), "authenticates no client")]
)
def test_brokers_that_anybody_may_ask_are_refused(tmp_path: Path, spec: BrokerWorkload, message: str) -> None:
    with pytest.raises(FailedPrecondition, match=message) as refused:
        prepared(tmp_path, HTTPS, broker=spec)
    assert refused.value.reason == "NOT_SECURED"


LINK = {
    "ssl.keystore.certificate.chain": "the chain",
    "ssl.keystore.key": "the key",
    "ssl.truststore.certificates": "the CA",
}
DRIVERS = "10.0.0.2:7430,10.0.0.3:7430"


def driver(**fields: Any) -> SparkWorkload:
    return SparkWorkload(host=AWAY, port=7430, master="spark://m:7077", cluster="big", **fields)


def test_links_to_a_spark_cluster_keep_their_addresses_with_tls(tmp_path: Path) -> None:
    spec = WorkerWorkload(
        worker_cluster="x", host=AWAY, port=8083, https=True, properties=PASSWORDS,
        spark_cluster="big", spark_address=DRIVERS, spark_client_properties=LINK,
    )  # fmt: skip
    command = prepared(tmp_path, HTTPS, worker=spec)
    settings = tomllib.loads(command.files["settings.toml"])
    assert settings["spark_address"] == DRIVERS
    own = Home(tmp_path).workload("worker/x/0")
    files = {name: Path(settings[name]) for name in ("spark_tls_certificate", "spark_tls_key", "spark_ca")}
    assert {file.parent for file in files.values()} == {own}
    assert [command.files[file.name] for file in files.values()] == ["the chain", "the key", "the CA"]
    assert "the key" not in command.files["settings.toml"]

    with pytest.raises(FailedPrecondition, match="no certificate of the installation's CA") as missing:
        prepared(tmp_path, HTTPS, spark=driver(tls=True, slot_port=7431))
    assert missing.value.reason == "NO_AUTHORITY"
    authority = Authority()
    issued = authority.issue("brokers", "keelman://broker/n1", AWAY)
    folder = MemberFolder(tmp_path / "trust" / "broker")
    folder.write(Pems(issued.chain_pem.encode(), issued.key_pem.encode(), authority.pem.encode()))
    link = StateLink(lambda: Pems(roots=authority.pem.encode()))
    certificate = Certificate(folder, Home(tmp_path).workloads, link, "s:1", "n1", (AWAY,))
    certificate.begin()
    command = prepared(tmp_path, HTTPS, certificate, spark=driver(tls=True, slot_port=7431))
    settings = tomllib.loads(command.files["settings.toml"])
    assert (settings["host"], settings["advertised_address"]) == (AWAY, f"{AWAY}:7431")
    assert command.ports == ((AWAY, 7430), (AWAY, 7431))
    own = Home(tmp_path).workload("spark/x/0")
    chains = {settings[f"{prefix}tls_{name}"] for prefix in ("", "link_") for name in ("certificate", "key")}
    assert chains == {str(own / KEYSTORE)}
    assert {settings["tls_ca"], settings["link_client_ca"]} == {str(own / AUTHORITY)}
    own.mkdir(parents=True)
    for name in (KEYSTORE, AUTHORITY):
        (own / name).write_text(command.files[name])
    pems = PemFiles("spark", own / KEYSTORE, own / KEYSTORE, own / AUTHORITY).newest()
    assert pems.roots.decode() == authority.pem, "one file with key and chain serves as both"


@pytest.mark.parametrize(
    "kind",
    [
        {"spark": driver()},
        {
            "worker": WorkerWorkload(
                worker_cluster="x", host="127.0.0.1", spark_cluster="big", spark_address=f"127.0.0.1:1,{DRIVERS}"
            )
        },
    ],
)
def test_links_to_a_spark_cluster_in_plain_text_are_refused(tmp_path: Path, kind: dict[str, Any]) -> None:
    with pytest.raises(FailedPrecondition, match="Spark cluster big would be plain text") as refused:
        prepared(tmp_path, HTTPS, **kind)
    assert refused.value.reason == "NOT_SECURED"
    assert "trust = installation" in refused.value.message
    prepared(tmp_path, "mesh", **kind)
    [spec] = kind.values()
    here = type(spec)()
    here.CopyFrom(spec)
    if isinstance(here, SparkWorkload):
        here.host = "127.0.0.1"
    else:
        here.spark_address = "127.0.0.1:1,127.0.0.1:2"
    prepared(tmp_path, HTTPS, **dict.fromkeys(kind, here))


def test_spark_keeps_to_loopback(tmp_path: Path) -> None:
    command = prepared(tmp_path, HTTPS, spark=SparkWorkload(host=AWAY, port=7430, master="local[1]"))
    assert command.ports == (("127.0.0.1", 7430),)


def test_the_address_of_such_a_node_may_be_off_loopback() -> None:
    assert Settings(node_address=AWAY, workload_trust=HTTPS).workload_address == AWAY
    with pytest.raises(InvalidArgument, match="workload_trust = https"):
        _ = Settings(node_address=AWAY).workload_address
