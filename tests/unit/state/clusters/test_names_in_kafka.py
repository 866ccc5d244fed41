"""A worker cluster's group and topics are its own."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest

from keelman.model.cluster import BrokerCluster, ClusterGoal, ExternalBrokers, WorkerCluster, WorkerClusterSpec
from keelman.model.errors import FailedPrecondition
from keelman.state.clusters.kafka_names import check_own_names
from keelman.state.snapshot import Snapshot

TIME = datetime(2026, 1, 1, tzinfo=UTC)
BROKERS = BrokerCluster("default", "u", TIME, TIME, 1, "1", ClusterGoal.RUNNING, ExternalBrokers("h:1"))
SPEC = WorkerClusterSpec("default", count=1)
DEMO = WorkerCluster("demo", "u", TIME, TIME, 1, "1", ClusterGoal.RUNNING, SPEC)


def test_a_cluster_that_is_changed_is_not_in_its_own_way() -> None:
    snapshot = Snapshot(broker_clusters={"default": BROKERS}, worker_clusters={"demo": DEMO})
    check_own_names("demo", dataclasses.replace(SPEC, count=2), snapshot)
    with pytest.raises(FailedPrecondition, match="is the group of worker cluster 'demo'"):
        check_own_names("other", dataclasses.replace(SPEC, properties={"group.id": "keelman-demo"}), snapshot)
    topic = {"status.storage.topic": "demo.connect-status"}
    with pytest.raises(FailedPrecondition, match="is a topic of worker cluster 'demo'"):
        check_own_names("other", dataclasses.replace(SPEC, properties=topic), snapshot)
