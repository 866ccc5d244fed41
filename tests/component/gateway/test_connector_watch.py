"""A watch of connectors: the workers' reports, their answers before the first report, and the death of the gateway."""

import asyncio
import signal
from pathlib import Path

import pytest

from component.gateway.test_lists import SOURCE, Leader, demo_runs
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters
from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED, CONNECTOR_STATE_RUNNING, Connector
from keelman.api.connect.v1.worker_cluster_service_pb2_grpc import WorkerClusterServiceStub
from keelman.kafka.feed import ReportPublisher
from keelman.model.errors import NotFound, Unavailable
from keelman.rpc.channels import channel
from keelman.rpc.watching import Changed, KnownConnectors, watch_connectors
from support.eventually import eventually
from support.gateway.system import running_system

pytestmark = pytest.mark.component
NAME = "watched"
"""No other test reports of it."""


class Watching:
    """A watch, and all the changes that it has delivered."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.known = KnownConnectors()
        self.said: list[tuple[str, Connector | None]] = []
        self.away: list[Unavailable] = []

    async def run(self) -> None:
        async with channel(self.address) as link:
            async for present, changed in watch_connectors(link, on_away=self.away.append):
                self._hear(present, changed)

    def _hear(self, known_connectors: KnownConnectors, changed: Changed) -> None:
        self.known = known_connectors
        self.said += [("/".join(key), connector) for key, connector in changed]

    def states(self) -> dict[str, int]:
        return {name: connector.state for (_, name), connector in self.known.connectors.items()}


async def test_each_change_comes_as_it_is_reported(bootstrap: str, tmp_path: Path) -> None:
    async with running_system(tmp_path) as system, channel(system.gateway.address) as gateway:
        url = await demo_runs(gateway, bootstrap, NAME)
        worker = system.worker(f"worker/{NAME}/0")
        worker.connectors["early"] = SOURCE | {"healthy": "yes"}
        seen = Watching(system.gateway.address)
        watching = asyncio.ensure_future(seen.run())
        try:
            await eventually(lambda: seen.states() == {"early": CONNECTOR_STATE_RUNNING}, what="its worker is called")
            worker.refusal = 500, "it is broken"
            await eventually(
                lambda: "it is broken" in seen.known.unreachable.get(NAME, ""),
                what="it has the reason why the value is unknown",
            )
            assert seen.states() == {"early": CONNECTOR_STATE_RUNNING}, "as it was known last"
            worker.refusal = None
            await eventually(lambda: seen.known.unreachable == {})
            assert seen.states() == {"early": CONNECTOR_STATE_RUNNING}
            async with ReportPublisher(bootstrap, "test") as publisher:
                leader = Leader(publisher, url.removeprefix("http://"), NAME)
                for name in ("a", "b"):
                    leader.tell(name)
                leader.close()
                leader.alive()
                await eventually(lambda: sorted(seen.states()) == ["a", "b"], what="the reports decide")
                worker.asked.clear()
                leader.tell("b", CONNECTOR_STATE_FAILED)
                await eventually(lambda: seen.states()["b"] == CONNECTOR_STATE_FAILED)
                seen.said.clear()
                system.gateway.stop(signal.SIGKILL)
                await eventually(lambda: seen.away, what="the watch notes that the gateway is away")
                leader.tell("c")
                await system.gateway.start()

                def has_all() -> bool:
                    leader.alive()
                    return sorted(seen.states()) == ["a", "b", "c"]

                await eventually(has_all)
                assert [name for name, _ in seen.said] == [f"{NAME}/c"], "it continues from its position"
                assert [target for _, target in worker.asked if b"expand" in target] == [], "no worker was called"
                stub = WorkerClusterServiceStub(gateway)
                await stub.StopWorkerCluster(clusters.StopWorkerClusterRequest(name=NAME))
                await eventually(lambda: seen.states() == {}, what="those of a stopped cluster are not shown")
            with pytest.raises(NotFound, match="nobody"):
                await anext(watch_connectors(gateway, worker_cluster="nobody"))
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
