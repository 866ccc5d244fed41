"""Which managed broker clusters get TLS, and the properties that their clients get."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from keelman.model.cluster import BrokerTls, ManagedBrokers
from keelman.model.errors import InvalidArgument
from keelman.model.workload import BrokerSpec, WorkerSpec
from keelman.runtime.tls.certificates import certificate_facts, private_key_digest
from keelman.state.clusters.broker_clusters import create, update
from keelman.state.clusters.broker_tls import with_tls
from keelman.state.nouns.broker_cluster import broker_cluster_message
from keelman.state.trust.authority import Authority
from support.state.stores import open_store
from support.worlds.planner import World

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CA = Authority.made(NOW)
UNSAID = BrokerTls.UNSPECIFIED


def world() -> World:
    new_world = World()
    new_world.do_node("here", "online")
    new_world.do_node("away", "online", "10.0.0.1")
    new_world.do_node("unknown", "expected")
    return new_world


def decided(*nodes: str, tls: BrokerTls = UNSAID, ca: Authority | None = CA) -> ManagedBrokers:
    result = with_tls(ManagedBrokers(nodes, tls=tls), "b", world().snapshot, ca, NOW)
    assert isinstance(result, ManagedBrokers)
    return result


@pytest.mark.parametrize(
    ("nodes", "ca", "broker_tls"),
    [
        (("here",), CA, BrokerTls.NONE),
        (("here", "away"), CA, BrokerTls.MUTUAL),
        (("unknown",), CA, BrokerTls.MUTUAL),
        (("away",), None, BrokerTls.NONE),
    ],
)
def test_where_nothing_is_said_brokers_off_loopback_have_it_if_there_is_a_ca(
    nodes: tuple[str, ...], ca: Authority | None, broker_tls: BrokerTls
) -> None:
    assert decided(*nodes, ca=ca).tls is broker_tls


def test_clients_are_given_the_ca_and_where_it_is_asked_for_a_certificate_of_their_own() -> None:
    assert not decided("away", tls=BrokerTls.NONE).client_properties
    trust = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.certificates": CA.pem}
    assert decided("here", tls=BrokerTls.SERVER).client_properties == trust
    mutual = decided("here", tls=BrokerTls.MUTUAL).client_properties
    assert mutual.items() >= trust.items()
    facts = certificate_facts(mutual["ssl.keystore.certificate.chain"].encode())
    assert (facts.uris, facts.end) == (("keelman://client/b",), CA.certificate.not_valid_after_utc)
    assert private_key_digest(mutual["ssl.keystore.key"].encode()) == facts.key_digest


def test_without_a_ca_it_cannot_be_asked_for() -> None:
    with pytest.raises(InvalidArgument, match=r"spec\.managed\.tls: 'SERVER' is not legal: NONE: .* no CA"):
        decided("away", tls=BrokerTls.SERVER, ca=None)


def test_brokers_workers_and_spark_are_planned_with_it() -> None:
    new_world, spec = world(), decided("away", tls=BrokerTls.MUTUAL)
    new_world.do_managed("default", "away")
    new_world.brokers["default"] = replace(new_world.brokers["default"], spec=spec)
    new_world.do_workers("w", "default", count="1")
    new_world.do_start("workers", "w")
    new_world.do_plan()
    assert "broker/default/0" not in new_world.workloads, "its agent would start it in plain text"
    note = "waits for node away, whose agent is of a version that starts brokers without TLS"
    assert note in new_world.brokers["default"].note
    new_world.nodes["away"] = replace(new_world.nodes["away"], broker_tls=True)
    new_world.do_plan()
    specs = {name: workload.spec for name, workload in new_world.workloads.items()}
    broker, worker, spark = specs["broker/default/0"], specs["worker/w/0"], specs["spark/away"]
    assert isinstance(broker, BrokerSpec)
    assert (broker.tls, broker.client_certificates) == (True, True)
    assert isinstance(worker, WorkerSpec)
    assert worker.properties.items() >= spec.client_properties.items()
    assert worker.reports_client_properties == spec.client_properties == spark.reports_client_properties


async def test_it_is_kept_sealed_through_updates_and_cannot_be_changed(tmp_path: Path) -> None:
    spec = replace(decided("here", tls=BrokerTls.MUTUAL), nodes=("n1",))
    async with open_store(str(tmp_path / "state.db")) as store:
        async with store.write() as tx:
            tx.put(replace(world().nodes["here"], name="n1"))
            create(tx, "b", spec)
        async with store.write() as tx:
            changed = update(tx, "b", "", lambda old: ManagedBrokers(old.nodes, {"a": "b"}, tls=UNSAID))
        assert (changed.spec.tls, changed.spec.client_properties) == (BrokerTls.MUTUAL, spec.client_properties)
        shown = broker_cluster_message(changed).status.client_properties
        assert (shown["ssl.truststore.certificates"], shown["ssl.keystore.key"]) == (CA.pem, "[hidden]")
        with pytest.raises(InvalidArgument, match=r"spec\.managed\.tls"):
            async with store.write() as tx:
                update(tx, "b", "", lambda old: replace(old, tls=BrokerTls.SERVER))
    async with open_store(str(tmp_path / "state.db")) as store:
        assert store.snapshot.broker_clusters["b"].spec == changed.spec
    secret = spec.client_properties["ssl.keystore.key"].splitlines()[1].encode()
    assert not any(secret in file.read_bytes() for file in tmp_path.glob("state.db*"))
