"""Brokers that users of dedicated connectors name: which are legal, and what is told about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.model.cluster import ExternalBrokers
from keelman.model.connectors.dedicated_connector import DedicatedConnectorSpec
from keelman.model.errors import InvalidArgument, Unauthenticated, Unavailable
from keelman.state.brokers import external
from keelman.state.brokers.external import ExternalProbe
from keelman.state.clusters import broker_clusters
from keelman.state.dedicated.composition import brokers_of
from keelman.state.dedicated.policy import NamedBrokers, without_detail
from keelman.state.settings import Settings
from support.state.stores import open_store

STRICT = NamedBrokers(Settings(connector_policy="strict").policy_rules)


def spec(servers: str) -> DedicatedConnectorSpec:
    return DedicatedConnectorSpec(connector="c", bootstrap_servers=servers, config={"connector.class": "X"})


@pytest.mark.parametrize(
    "servers", ["127.0.0.1:22", "b:9092,LOCALHOST:22", "[::1]:22", "169.254.169.254:80", "0.0.0.0:1"]
)
async def test_addresses_of_the_services_host_are_refused(tmp_path: Path, servers: str) -> None:
    async with open_store(str(tmp_path / "state.db")) as store:
        with pytest.raises(InvalidArgument, match=r"^spec\.external\.bootstrap_servers: ") as raised:
            STRICT.check(spec(servers), store.snapshot)
        assert "keelman.policy.installation.hosts.denied" in raised.value.message
        NamedBrokers({}).check(spec(servers), store.snapshot)
        STRICT.check(spec("b:9092,10.0.0.1:9092"), store.snapshot)
        STRICT.check(spec(""), store.snapshot)
        async with store.write() as tx:
            broker_clusters.create(tx, "own", ExternalBrokers(servers))
        STRICT.check(spec(servers), store.snapshot)


async def test_it_is_not_told_which_ports_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors, asked = {"closed:1": "connection refused", "open:1": "no Kafka there"}, []

    async def ask(client: dict[str, str], *, seconds: float) -> str:
        asked.append(client["bootstrap.servers"])
        if client["bootstrap.servers"] == "kafka:1":
            raise Unauthenticated("wrong password")
        raise Unavailable(errors[client["bootstrap.servers"]])

    monkeypatch.setattr(external, "kafka_cluster_id", ask)
    async with open_store(str(tmp_path / "state.db")) as store:
        async with store.write() as tx:
            for number, servers in enumerate(("closed:1", "open:1", "kafka:1", "127.0.0.1:1")):
                broker_clusters.create(tx, f"made-{number}", brokers_of(spec(servers)))
            broker_clusters.create(tx, "admins", ExternalBrokers("closed:1"))
        await ExternalProbe(store, STRICT).reconcile()
        told = {name: cluster.seen.problem for name, cluster in store.snapshot.broker_clusters.items()}
    assert [told["made-0"], told["made-1"]] == [f"no broker answers at {servers}" for servers in errors]
    assert told["made-2"] == "wrong password"
    assert "may not name the host 127.0.0.1:1" in told["made-3"]
    assert told["admins"] == "connection refused"
    assert sorted(asked) == ["closed:1", "closed:1", "kafka:1", "open:1"]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("no broker answers at h:1: [Errno 111] Connect call failed", "no broker answers at h:1"),
        (
            "worker/a/0: no broker answers at h:1,[::1]:2: timed out\nmore",
            "worker/a/0: no broker answers at h:1,[::1]:2",
        ),
        ("no broker answers at h:1", "no broker answers at h:1"),
        ("wrong password: no", "wrong password: no"),
    ],
)
def test_a_text_tells_no_detail_of_a_port(message: str, shown: str) -> None:
    assert without_detail(message) == shown
