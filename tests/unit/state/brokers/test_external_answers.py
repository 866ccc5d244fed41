"""What is kept of the answers of external brokers."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keelman.model.cluster import BrokerCluster, ExternalBrokers
from keelman.model.errors import Unauthenticated, Unavailable
from keelman.state.brokers.external import ExternalProbe
from keelman.state.nouns import broker_cluster
from keelman.state.store import open_store

START = datetime(2026, 1, 1, tzinfo=UTC)


class Brokers:
    """Brokers that answer as they are told to."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    async def kafka_cluster_id(self, properties: Mapping[str, str], *, seconds: float) -> str:
        """As that of keelman.kafka."""
        if self.error is not None:
            raise self.error
        return "id"


async def test_since_when_they_are_out_of_reach_and_whether_they_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers, now = Brokers(), [START]
    monkeypatch.setattr("keelman.state.brokers.external.kafka_cluster_id", brokers.kafka_cluster_id)
    async with open_store(str(tmp_path / "state.db")) as store:
        monkeypatch.setattr(store.database, "clock", lambda: now[0])

        async def asked(error: Exception | None) -> BrokerCluster:
            brokers.error, now[0] = error, now[0] + timedelta(seconds=10)
            await ExternalProbe(store).reconcile()
            return store.snapshot.broker_clusters["b"]

        async with store.write() as tx:
            broker_cluster.create(tx, "b", ExternalBrokers("h:1"))
        found = await asked(None)
        assert (found.reachable, found.status.down_since, found.kafka_cluster_id) == (True, None, "id")
        found = await asked(Unavailable("no answer"))
        since = now[0]
        assert (found.seen.problem, found.seen.refused, found.status.down_since) == ("no answer", False, since)
        found = await asked(Unauthenticated("wrong password"))
        assert (found.seen.problem, found.seen.refused, found.status.down_since) == ("wrong password", True, since)
    async with open_store(str(tmp_path / "state.db")) as store:
        assert store.snapshot.broker_clusters["b"] == found, "it is read again as it was"
        brokers.error = None
        await ExternalProbe(store).reconcile()
        found = store.snapshot.broker_clusters["b"]
        assert (found.reachable, found.seen.problem, found.seen.refused) == (True, "", False)
        assert found.status.down_since is None
