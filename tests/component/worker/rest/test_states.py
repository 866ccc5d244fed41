"""The states of connectors that fail, step by step, as Apache Kafka Connect shows them: recorded in tests/recorded."""

import json
from pathlib import Path
from typing import Any

import pytest

from recorded.worker.state_steps import play
from support.places import RECORDED_FOLDER
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = pytest.mark.component


async def test_states_are_connects(bootstrap: str, spark: SparkService, tmp_path: Path) -> None:
    """With restarts switched off, as in Connect."""
    recorded = json.loads((RECORDED_FOLDER / "worker" / "states.json").read_text())
    never = {"keelman.restart.max.attempts": "0"}
    worker = WorkerProcess(tmp_path, bootstrap, "states", spark.address, never)
    async with workers(worker):

        async def ask(method: str, path: str, body: Any) -> tuple[int, Any]:
            answer = await worker.ask(method, path, body)
            return answer.status_code, answer.json() if answer.content else None

        for entry in recorded:
            name, method, what = entry["step"]
            played = await play(ask, (name, method, what), wanted=entry["states"])
            assert played == entry
        assert await worker.end() == 0
