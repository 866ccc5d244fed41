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
from keelman.rpc.credentials import Pems
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


def test_spark_keeps_to_loopback(tmp_path: Path) -> None:
    command = prepared(tmp_path, HTTPS, spark=SparkWorkload(host=AWAY, port=7430, master="local[1]"))
    assert command.ports == (("127.0.0.1", 7430),)


def test_the_address_of_such_a_node_may_be_off_loopback() -> None:
    assert Settings(node_address=AWAY, workload_trust=HTTPS).workload_address == AWAY
    with pytest.raises(InvalidArgument, match="workload_trust = https"):
        _ = Settings(node_address=AWAY).workload_address
