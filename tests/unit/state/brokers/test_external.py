"""External broker clusters are asked side by side."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from keelman.model.cluster import ExternalBrokers
from keelman.model.errors import Unavailable
from keelman.state.brokers import external
from keelman.state.brokers.external import AT_ONCE, ExternalProbe
from keelman.state.nouns import broker_cluster
from keelman.state.store import open_store
from keelman.testing.eventually import eventually


async def test_those_that_do_not_answer_delay_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def ask(client: Mapping[str, str], *, seconds: float) -> str:
        server = client["bootstrap.servers"]
        asked.append(server)
        if server == "answers:1":
            return "an-id"
        await asyncio.Event().wait()
        raise Unavailable("never")

    monkeypatch.setattr(external, "kafka_cluster_id", ask)
    async with open_store(str(tmp_path / "state.db")) as store:
        async with store.write() as tx:
            for number in range(AT_ONCE - 1):
                broker_cluster.create(tx, f"b-{number:02}", ExternalBrokers(f"silent-{number}:1"))
            broker_cluster.create(tx, "last", ExternalBrokers("answers:1"))
            broker_cluster.create(tx, "zz-waits", ExternalBrokers("waits:1"))
        probing = asyncio.ensure_future(ExternalProbe(store).reconcile())
        try:
            await eventually(lambda: store.snapshot.broker_cluster("last").kafka_cluster_id == "an-id", seconds=20)
            await eventually(lambda: len(asked) == AT_ONCE + 1, seconds=20, what="its turn goes to the next")
        finally:
            probing.cancel()
            with suppress(asyncio.CancelledError):
                await probing
