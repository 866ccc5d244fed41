"""Worker clusters with a Spark cluster get certificates for their links, sealed at rest, which follow the CA."""

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from keelman.model.cluster import ClusterGoal, ExternalBrokers, WorkerCluster, WorkerClusterSpec
from keelman.model.spark_cluster import SparkClusterSpec
from keelman.rpc.identity import Identity, IdentityKind, identity_in
from keelman.runtime.tls.certificates import certificate_facts, issued_by
from keelman.state.clusters import broker_clusters, spark_clusters, worker_clusters
from keelman.state.clusters.link_certificates import LinkCertificates
from keelman.state.resources.hidden import shown_spec
from keelman.state.rotation.steps import rotate
from keelman.state.trust.members import Members, open_members
from support.state.stores import open_store

CHAIN, KEY, TRUSTED = "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.truststore.certificates"


@pytest.fixture
async def members(tmp_path: Path) -> AsyncIterator[Members]:
    async with open_store(str(tmp_path / "state.db"), key_file=tmp_path / "key") as store:
        async with store.write() as tx:
            broker_clusters.create(tx, "default", ExternalBrokers("127.0.0.1:1"))
            spark_clusters.create(tx, "big", SparkClusterSpec("spark://m:7077"))
            for name, spark in (("linked", "big"), ("plain", "")):
                worker_clusters.create(tx, name, WorkerClusterSpec("default", count=1, spark_cluster=spark))
        yield await open_members(store, timedelta(days=30))


def cluster(members: Members, name: str = "linked") -> WorkerCluster:
    return members.store.snapshot.worker_cluster(name)


async def step(members: Members) -> None:
    async with members.store.write() as tx:
        await rotate(tx, force=True)
    await members.follow()


async def test_each_gets_its_own_and_nobody_sees_its_key(members: Members, tmp_path: Path) -> None:
    links = LinkCertificates(members.store, members)
    await links.reconcile()
    made = cluster(members)
    properties = made.spec.spark_client_properties
    facts = certificate_facts(properties[CHAIN].encode())
    assert identity_in(facts.uris) == Identity(IdentityKind.WORKER, f"linked.{made.uid}")
    assert properties[TRUSTED] == members.present.value.pem
    assert not cluster(members, "plain").spec.spark_client_properties
    await links.reconcile()
    assert cluster(members) == made, "it is made once"
    assert "PRIVATE KEY" not in str(shown_spec(made.spec).spark_client_properties)
    with sqlite3.connect(tmp_path / "state.db") as link:
        rows = str(link.execute("select payload from resource where noun = 'worker_cluster'").fetchall())
    assert "linked" in rows or "big" in rows
    assert "PRIVATE KEY" not in rows


async def test_it_is_kept_by_an_update_and_goes_with_the_spark_cluster(members: Members) -> None:
    await LinkCertificates(members.store, members).reconcile()
    before = cluster(members).spec.spark_client_properties
    async with members.store.write() as tx:
        worker_clusters.update(tx, "linked", "", lambda s: replace(s, count=2, spark_client_properties={}))
    assert cluster(members).spec.spark_client_properties == before
    async with members.store.write() as tx:
        worker_clusters.update(tx, "linked", "", lambda s: replace(s, spark_cluster=""))
    assert not cluster(members).spec.spark_client_properties


async def test_it_follows_the_authority(members: Members) -> None:
    links = LinkCertificates(members.store, members)
    await links.reconcile()
    await step(members)
    await links.reconcile()
    introduced = cluster(members).spec.spark_client_properties
    assert introduced[TRUSTED].count("BEGIN CERTIFICATE") == 2
    await step(members)
    await links.reconcile()
    replaced = cluster(members).spec.spark_client_properties
    assert replaced[CHAIN] != introduced[CHAIN]
    assert issued_by(replaced[CHAIN].encode(), members.authority.pem.encode())


async def test_without_an_authority_links_have_none(members: Members) -> None:
    await LinkCertificates(members.store, None).reconcile()
    assert not cluster(members).spec.spark_client_properties
    assert cluster(members).goal is ClusterGoal.STOPPED
