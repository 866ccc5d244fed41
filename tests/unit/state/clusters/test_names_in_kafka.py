"""A worker cluster's group and topics are its own."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest

from keelman.model.cluster import BrokerCluster, ClusterGoal, ExternalBrokers, WorkerCluster, WorkerClusterSpec
from keelman.model.errors import FailedPrecondition
from keelman.state.clusters.kafka_names import check_own_names, clash
from keelman.state.kafka.kafkas import same_kafka
from keelman.state.resources import snapshot as snapshots
from support.state.snapshots import snapshot_of

TIME = datetime(2026, 1, 1, tzinfo=UTC)
BROKERS = BrokerCluster("default", "u", TIME, TIME, 1, "1", ClusterGoal.RUNNING, ExternalBrokers("h:1"))
SPEC = WorkerClusterSpec("default", count=1)
DEMO = WorkerCluster("demo", "u", TIME, TIME, 1, "1", ClusterGoal.RUNNING, SPEC)


def test_a_cluster_that_is_changed_is_not_in_its_own_way() -> None:
    snapshot = snapshot_of(broker_clusters={"default": BROKERS}, worker_clusters={"demo": DEMO})
    check_own_names("demo", dataclasses.replace(SPEC, count=2), snapshot)
    with pytest.raises(FailedPrecondition, match="is the group of worker cluster 'demo'"):
        check_own_names("other", dataclasses.replace(SPEC, properties={"group.id": "keelman-demo"}), snapshot)
    topic = {"status.storage.topic": "demo.connect-status"}
    with pytest.raises(FailedPrecondition, match="is a topic of worker cluster 'demo'"):
        check_own_names("other", dataclasses.replace(SPEC, properties=topic), snapshot)


def brokers(name: str, servers: str, kafka: str = "") -> BrokerCluster:
    return dataclasses.replace(BROKERS, name=name, spec=ExternalBrokers(servers), kafka_cluster_id=kafka)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (brokers("b", "h:1"), True),
        (brokers("b", "i:1, H:1"), True),
        (brokers("b", "h:1", "another"), False),
        (brokers("b", "i:1", "mine"), True),
        (brokers("b", "i:1"), False),
    ],
)
def test_two_broker_clusters_are_one_kafka_by_its_id_or_else_by_a_server(other: BrokerCluster, same: bool) -> None:
    mine = brokers("a", "h:1", "mine")
    snapshot = snapshot_of(broker_clusters={"a": mine, "b": other})
    assert (snapshot.names_of_kafka("a"), snapshot.names_of_kafka("b")) == (
        (["a", "b"],) * 2 if same else (["a"], ["b"])
    )


def test_a_name_in_kafka_is_looked_up_however_many_kafkas_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def counted(broker_cluster: BrokerCluster, other: BrokerCluster) -> bool:
        compared.append(other.name)
        return same_kafka(broker_cluster, other)

    monkeypatch.setattr(snapshots, "same_kafka", counted)
    others = {f"b{number}": brokers(f"b{number}", f"h{number}:1", f"k{number}") for number in range(500)}
    mine = {"default": brokers("default", "h:1", "mine"), "again": brokers("again", "h:2", "mine")}
    group = {"group.id": "g"}
    older = dataclasses.replace(DEMO, spec=dataclasses.replace(SPEC, properties=group))
    younger = dataclasses.replace(older, name="younger", spec=WorkerClusterSpec("again", count=1, properties=group))
    snapshot = snapshot_of(broker_clusters=others | mine, worker_clusters={"demo": older, "younger": younger})
    assert "'g' is the group of worker cluster 'demo'" in clash(younger, snapshot)
    assert sorted(compared) == ["again", "default"]
