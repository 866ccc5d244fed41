"""Which managed broker clusters get TLS, and the properties that their clients get."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from keelman.model.cluster import BrokerAccess, BrokerTls, ManagedBrokers
from keelman.model.errors import InvalidArgument
from keelman.model.workload import BrokerSpec, WorkerSpec
from keelman.runtime.tls.certificates import certificate_facts, private_key_digest
from keelman.state.clusters.broker_clusters import create, update
from keelman.state.clusters.broker_tls import CHAIN, TRUSTED, with_authorities, with_tls
from keelman.state.nouns.broker_cluster import broker_cluster_message
from keelman.state.trust.authorities import Authorities, AuthorityRole
from keelman.state.trust.authority import Authority
from support.state.stores import open_store
from support.worlds.planner import World

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CA = Authority.made(NOW)
UNSAID = BrokerTls.UNSPECIFIED


def world() -> World:
    two_nodes = World()
    two_nodes.do_node("here", "online")
    two_nodes.do_node("away", "online", "10.0.0.1")
    two_nodes.do_node("unknown", "expected")
    return two_nodes


def decided(*nodes: str, tls: BrokerTls = UNSAID, ca: Authority | None = CA) -> ManagedBrokers:
    managed = with_tls(ManagedBrokers(nodes, tls=tls, access=BrokerAccess.UNSPECIFIED), "b", world().snapshot, ca, NOW)
    assert isinstance(managed, ManagedBrokers)
    return managed


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


def test_clients_follow_a_ca_that_is_replaced() -> None:
    new, first = Authority.made(NOW), decided("here", tls=BrokerTls.MUTUAL)
    introduced = with_authorities(first, "b", Authorities(CA, new, AuthorityRole.NEXT), NOW)
    assert introduced.client_properties == {**first.client_properties, TRUSTED: CA.pem + new.pem}
    replaced = with_authorities(introduced, "b", Authorities(new, CA, AuthorityRole.FORMER), NOW)
    chain = replaced.client_properties[CHAIN]
    assert chain.endswith(new.pem)
    facts = certificate_facts(chain.encode())
    assert private_key_digest(replaced.client_properties["ssl.keystore.key"].encode()) == facts.key_digest
    after = with_authorities(replaced, "b", Authorities(new), NOW)
    assert after.client_properties == {**replaced.client_properties, TRUSTED: new.pem}
    plain = decided("here", tls=BrokerTls.NONE)
    assert with_authorities(plain, "b", Authorities(new), NOW) == plain


def test_writers_of_reports_follow_a_ca_that_is_replaced() -> None:
    new, first = Authority.made(NOW), decided("here", tls=BrokerTls.MUTUAL)
    replaced = with_authorities(first, "b", Authorities(new, CA, AuthorityRole.FORMER), NOW)
    facts = certificate_facts(replaced.reports_client_properties[CHAIN].encode())
    assert facts.uris == ("keelman://reports/b",)
    assert replaced.reports_client_properties[CHAIN].endswith(new.pem)
    assert first.reports_client_properties["ssl.keystore.key"] != first.client_properties["ssl.keystore.key"]


@pytest.mark.parametrize(
    ("tls", "access", "properties", "decided_access"),
    [
        (BrokerTls.MUTUAL, BrokerAccess.UNSPECIFIED, {}, BrokerAccess.RULES),
        (BrokerTls.MUTUAL, BrokerAccess.OPEN, {}, BrokerAccess.OPEN),
        (BrokerTls.MUTUAL, BrokerAccess.UNSPECIFIED, {"authorizer.class.name": "mine"}, BrokerAccess.OPEN),
        (BrokerTls.SERVER, BrokerAccess.UNSPECIFIED, {}, BrokerAccess.OPEN),
        (BrokerTls.NONE, BrokerAccess.UNSPECIFIED, {}, BrokerAccess.OPEN),
    ],
)
def test_access_rules_need_clients_with_certificates_and_no_others(
    tls: BrokerTls, access: BrokerAccess, properties: dict[str, str], decided_access: BrokerAccess
) -> None:
    spec = ManagedBrokers(("here",), properties, tls=tls, access=access)
    managed = with_tls(spec, "b", world().snapshot, CA, NOW)
    assert isinstance(managed, ManagedBrokers)
    assert (managed.access, bool(managed.reports_client_properties)) == (decided_access, managed.has_rules)


@pytest.mark.parametrize(
    ("tls", "properties", "message"),
    [
        (BrokerTls.SERVER, {}, r"spec\.managed\.access: 'RULES' is not legal: OPEN with tls SERVER"),
        (BrokerTls.MUTUAL, {"principal.builder.class": "x"}, r"OPEN with principal\.builder\.class among"),
    ],
)
def test_access_rules_that_cannot_be_are_refused(tls: BrokerTls, properties: dict[str, str], message: str) -> None:
    spec = ManagedBrokers(("here",), properties, tls=tls, access=BrokerAccess.RULES)
    with pytest.raises(InvalidArgument, match=message):
        with_tls(spec, "b", world().snapshot, CA, NOW)


def test_without_a_ca_it_cannot_be_asked_for() -> None:
    with pytest.raises(InvalidArgument, match=r"spec\.managed\.tls: 'SERVER' is not legal: NONE: .* no CA"):
        decided("away", tls=BrokerTls.SERVER, ca=None)


def test_brokers_workers_and_spark_are_planned_with_it() -> None:
    two_nodes, spec = world(), decided("away", tls=BrokerTls.MUTUAL)
    two_nodes.do_managed("default", "away")
    two_nodes.brokers["default"] = replace(two_nodes.brokers["default"], spec=spec)
    two_nodes.do_workers("w", "default", count="1")
    two_nodes.do_start("workers", "w")
    two_nodes.do_plan()
    assert "broker/default/0" not in two_nodes.workloads, "its agent would start it in plain text"
    note = "waits for node away, whose agent is of a version that starts brokers without TLS"
    assert note in two_nodes.brokers["default"].note
    two_nodes.nodes["away"] = replace(two_nodes.nodes["away"], broker_tls=True)
    two_nodes.do_plan()
    assert "worker/w/0" not in two_nodes.workloads
    assert two_nodes.workers["w"].note == "waits for its access rules on the brokers of default"
    mine = {**spec.client_properties, "ssl.keystore.key": "mine"}
    cluster = two_nodes.workers["w"]
    two_nodes.workers["w"] = replace(cluster, spec=replace(cluster.spec, credentials=mine))
    two_nodes.do_plan()
    specs = {name: workload.spec for name, workload in two_nodes.workloads.items()}
    broker, worker, spark = specs["broker/default/0"], specs["worker/w/0"], specs["spark/away"]
    assert isinstance(broker, BrokerSpec)
    assert (broker.tls, broker.client_certificates) == (True, True)
    assert isinstance(worker, WorkerSpec)
    assert broker.properties["super.users"] == "User:broker;User:CN=client/default"
    assert worker.properties.items() >= mine.items()
    assert worker.reports_client_properties == spec.reports_client_properties == spark.reports_client_properties


async def test_it_is_kept_sealed_through_updates_and_cannot_be_changed(tmp_path: Path) -> None:
    spec = replace(decided("here", tls=BrokerTls.MUTUAL), nodes=("n1",))
    async with open_store(str(tmp_path / "state.db")) as store:
        async with store.write() as tx:
            tx.put(replace(world().nodes["here"], name="n1"))
            create(tx, "b", spec)
        async with store.write() as tx:
            changed = update(
                tx,
                "b",
                "",
                lambda old: ManagedBrokers(old.nodes, {"a": "b"}, tls=UNSAID, access=BrokerAccess.UNSPECIFIED),
            )
        assert (changed.spec.tls, changed.spec.client_properties) == (BrokerTls.MUTUAL, spec.client_properties)
        assert (changed.spec.access, changed.spec.reports_client_properties) == (
            BrokerAccess.RULES,
            spec.reports_client_properties,
        )
        shown = broker_cluster_message(changed).status.client_properties
        assert (shown["ssl.truststore.certificates"], shown["ssl.keystore.key"]) == (CA.pem, "[hidden]")
        with pytest.raises(InvalidArgument, match=r"spec\.managed\.tls"):
            async with store.write() as tx:
                update(tx, "b", "", lambda old: replace(old, tls=BrokerTls.SERVER))
        with pytest.raises(InvalidArgument, match=r"spec\.managed\.access"):
            async with store.write() as tx:
                update(tx, "b", "", lambda old: replace(old, access=BrokerAccess.OPEN))
    async with open_store(str(tmp_path / "state.db")) as store:
        assert store.snapshot.broker_clusters["b"].spec == changed.spec
    secret = spec.client_properties["ssl.keystore.key"].splitlines()[1].encode()
    assert not any(secret in file.read_bytes() for file in tmp_path.glob("state.db*"))
