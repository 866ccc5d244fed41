"""Three workers are stopped or killed and started again, one by one, while records flow: none lost, none twice."""

import signal
from pathlib import Path

import pytest

from support.spark.service import SparkService
from support.worker.groups import Flow, Workers, feeding

pytestmark = pytest.mark.component


async def test_nothing_is_lost_or_doubled_by_bounces(
    bootstrap: str, spark: SparkService, tmp_path: Path, name: str
) -> None:
    workers = Workers.of(tmp_path, bootstrap, name, spark.address, 3)
    flows = [Flow(tmp_path, f"{name}-{n}") for n in range(2)]
    async with workers.running():
        for flow in flows:
            await workers.begin(bootstrap, flow)
        async with feeding(*flows):
            for number, process in zip(
                (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL), workers.processes, strict=True
            ):
                for flow in flows:
                    await flow.passes()
                code = await process.end(number)
                assert code == (0 if number == signal.SIGTERM else -number), process.output[-3000:]
                await process.start()
            for flow in flows:
                await flow.passes()
        for flow in flows:
            report = flow.judged()
            assert report.clean, report
        for process in workers.processes:
            assert await process.end() == 0
