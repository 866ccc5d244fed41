"""The workers' reports about their connectors, through a real broker, folded as the state service folds it."""

import asyncio
import signal
from pathlib import Path

import pytest

from keelman.api.connect.v1.connector_pb2 import (
    CONNECTOR_STATE_PAUSED,
    CONNECTOR_STATE_RUNNING,
    CONNECTOR_STATE_UNSPECIFIED,
    CONNECTOR_TYPE_SOURCE,
    Connector,
)
from keelman.kafka.feed import REPORT_TOPICS, consume
from keelman.runtime.logs.redaction import HIDDEN
from keelman.state.reports.reports import Reports
from keelman.state.resources.hub import Hub
from support.eventually import eventually
from support.worker.processes import LinkSide, WorkerProcess, workers

pytestmark = pytest.mark.component


def config(folder: Path, **more: str) -> dict[str, str]:
    return {"connector.class": "FileStreamSource", "file": str(folder / "in"), "topic": "reported", **more}


async def test_connectors_are_reported_by_whoever_leads(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path, name: str
) -> None:
    flags = ("--reports-bootstrap-servers", bootstrap, "--worker-cluster", name)
    pair = [WorkerProcess(tmp_path / str(n), bootstrap, name, link[1], flags=flags) for n in range(2)]
    reports = Reports(Hub())

    async def fold() -> None:
        async for fact in consume(bootstrap, REPORT_TOPICS):
            reports.fold(fact)

    def known() -> dict[str, Connector]:
        connectors, _ = reports.connectors.page([name], CONNECTOR_STATE_UNSPECIFIED, 1000, "")
        return {c.name: c for c in connectors}

    def states(connector: str) -> list[int]:
        result = known().get(connector, Connector())
        return [result.state, *(t.state for t in result.tasks)]

    async with workers(*pair):
        folding = asyncio.ensure_future(fold())
        try:
            await eventually(lambda: reports.connectors.reported(name), what="the leader has begun a round")
            for item in ("a", "b"):
                secret = config(tmp_path, **{"database.password": "canary"})
                answer = await pair[0].ask("POST", "/connectors", {"name": item, "config": secret})
                assert answer.status_code == 201, answer.text
            await eventually(lambda: states("a") == states("b") == [CONNECTOR_STATE_RUNNING] * 2)
            shown = known()["a"]
            assert (shown.type, shown.config["topic"]) == (CONNECTOR_TYPE_SOURCE, "reported")
            assert shown.config["database.password"] == HIDDEN
            assert shown.worker_id in {p.id for p in pair}
            await pair[0].ask("PUT", "/connectors/a/pause", None)
            await eventually(lambda: states("a") == [CONNECTOR_STATE_PAUSED] * 2)
            victim = next(p for p in pair if leads(reports, p))
            other = next(p for p in pair if p is not victim)
            await victim.end(signal.SIGKILL)
            await eventually(lambda: leads(reports, other), what="the other one leads")
            await other.ask("DELETE", "/connectors/a", None)
            await eventually(lambda: list(known()) == ["b"], what="a connector that is deleted is gone")
            await eventually(
                lambda: known()["b"].worker_id == other.id and states("b") == [CONNECTOR_STATE_RUNNING] * 2
            )
        finally:
            folding.cancel()
            await asyncio.gather(folding, return_exceptions=True)


def leads(reports: Reports, process: WorkerProcess) -> bool:
    _, membership = reports._workers.get(process.id, (0.0, None))
    return membership is not None and membership.joined and membership.leader
