"""External broker clusters are queried side by side, and their answers are stored and logged."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from keelman.model.cluster import BrokerCluster, ExternalBrokers, WorkerClusterSpec
from keelman.model.errors import Unauthenticated, Unavailable
from keelman.state.brokers import external
from keelman.state.brokers.external import AT_ONCE, ExternalProbe
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.resources.store import ResourceStore
from support.eventually import eventually
from support.state.stores import open_store

START = datetime(2026, 1, 1, tzinfo=UTC)
SHARED = {"group.id": "g"}
PROBLEM = (
    "spec.properties.group.id: 'g' is the group of worker cluster 'older' on broker cluster 'one', which is the same "
    "Kafka: give another group.id"
)


async def test_those_that_do_not_answer_delay_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []

    async def ask(client: Mapping[str, str], *, seconds: float) -> str:
        server = client["bootstrap.servers"]
        requests.append(server)
        if server == "answers:1":
            return "an-id"
        await asyncio.Event().wait()
        raise Unavailable("never")

    monkeypatch.setattr(external, "kafka_cluster_id", ask)
    async with open_store(str(tmp_path / "state.db")) as store:
        async with store.write() as tx:
            for number in range(AT_ONCE - 1):
                broker_clusters.create(tx, f"b-{number:02}", ExternalBrokers(f"silent-{number}:1"))
            broker_clusters.create(tx, "last", ExternalBrokers("answers:1"))
            broker_clusters.create(tx, "zz-waits", ExternalBrokers("waits:1"))
        probing = asyncio.ensure_future(ExternalProbe(store).reconcile())
        try:
            await eventually(lambda: store.snapshot.broker_cluster("last").kafka_cluster_id == "an-id", seconds=20)
            await eventually(lambda: len(requests) == AT_ONCE + 1, seconds=20, what="its turn goes to the next")
        finally:
            probing.cancel()
            with suppress(asyncio.CancelledError):
                await probing


async def on_one_kafka(store: ResourceStore, answers: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two worker clusters with one group name, on broker clusters with these answers; returns the logged clashes."""

    async def ask(client: Mapping[str, str], *, seconds: float) -> str:
        return answers[client["bootstrap.servers"]]

    monkeypatch.setattr(external, "kafka_cluster_id", ask)
    for name, brokers in (("older", "one"), ("younger", "two")):
        async with store.write() as tx:
            broker_clusters.create(tx, brokers, ExternalBrokers(f"{brokers}:1"))
            worker_clusters.create(tx, name, WorkerClusterSpec(brokers, count=1, properties=SHARED))
            worker_clusters.start(tx, name, "")
    with capture_logs() as logged:
        await ExternalProbe(store).reconcile()
        await ExternalProbe(store).reconcile()
    return [
        f"{entry['worker_cluster']}: {entry['problem']}" for entry in logged if entry["event"] == "names_in_kafka_clash"
    ]


async def test_the_younger_of_two_that_turn_out_to_share_a_group_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(str(tmp_path / "state.db")) as store:

        def messages() -> list[str]:
            return [store.snapshot.worker_cluster(name).status.message for name in ("older", "younger")]

        clashes = await on_one_kafka(store, {"one:1": "an-id", "two:1": "an-id"}, monkeypatch)
        assert clashes == [f"younger: {PROBLEM}"], "once, when it comes out"
        assert messages() == ["", PROBLEM]
        async with store.write() as tx:
            worker_clusters.stop(tx, "older", "")
        assert messages()[1] == "", "it blocks no other check any more"


async def test_two_kafkas_may_have_groups_of_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_store(str(tmp_path / "state.db")) as store:
        assert await on_one_kafka(store, {"one:1": "an-id", "two:1": "another"}, monkeypatch) == []
        assert [worker_cluster.status.message for worker_cluster in store.snapshot.worker_clusters.values()] == ["", ""]


class Brokers:
    """Brokers with answers of the test."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    async def kafka_cluster_id(self, properties: Mapping[str, str], *, seconds: float) -> str:
        """The signature of keelman.kafka's function."""
        if self.error is not None:
            raise self.error
        return "id"


async def test_since_when_they_are_out_of_reach_and_whether_they_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers, now = Brokers(), [START]
    monkeypatch.setattr(external, "kafka_cluster_id", brokers.kafka_cluster_id)
    async with open_store(str(tmp_path / "state.db")) as store:
        monkeypatch.setattr(store.database, "clock", lambda: now[0])

        async def asked(error: Exception | None) -> BrokerCluster:
            brokers.error, now[0] = error, now[0] + timedelta(seconds=10)
            await ExternalProbe(store).reconcile()
            return store.snapshot.broker_clusters["b"]

        async with store.write() as tx:
            broker_clusters.create(tx, "b", ExternalBrokers("h:1"))
        cluster = await asked(None)
        assert (cluster.reachable, cluster.status.down_since, cluster.kafka_cluster_id) == (True, None, "id")
        cluster = await asked(Unavailable("no answer"))
        since = now[0]
        assert (cluster.seen.problem, cluster.seen.refused, cluster.status.down_since) == ("no answer", False, since)
        cluster = await asked(Unauthenticated("wrong password"))
        assert (cluster.seen.problem, cluster.seen.refused, cluster.status.down_since) == (
            "wrong password",
            True,
            since,
        )
    async with open_store(str(tmp_path / "state.db")) as store:
        assert store.snapshot.broker_clusters["b"] == cluster, "it is read again as it was"
        brokers.error = None
        await ExternalProbe(store).reconcile()
        cluster = store.snapshot.broker_clusters["b"]
        assert (cluster.reachable, cluster.seen.problem, cluster.seen.refused) == (True, "", False)
        assert cluster.status.down_since is None
