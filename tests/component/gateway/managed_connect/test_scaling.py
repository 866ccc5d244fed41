"""An autoscaled connector under a load and after it, as the SDK sees it.

Its workers come and go, and the API returns the capacity as the client sent it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from keelman.rpc.channels import channel
from support.copying.loads import COSTLY, Numbers
from support.eventually import eventually
from support.gateway.managed_connect.world import World, connector, file_source
from support.kafka.topics import messages
from support.state.dedicated import Dedicated
from support.state.scaled import Scaled

pytestmark = [pytest.mark.component, pytest.mark.slow]
NAME, TOPIC, BATCH = "grown", "managed-grown", 20_000
CAPACITY = {
    "autoScaling": {
        "minWorkerCount": 1, "maxWorkerCount": 2, "mcuCount": 1, "maxAutoscalingTaskCount": 3,
        "scaleInPolicy": {"cpuUtilizationPercentage": 6}, "scaleOutPolicy": {"cpuUtilizationPercentage": 12},
    }
}  # fmt: skip


async def worker_count(world: World) -> float:
    """The value of the metric."""
    async with httpx.AsyncClient(trust_env=False) as client:
        text = (await client.get(f"{world.endpoint}/metrics", timeout=300)).text
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return sum(
        s.value for s in samples if s.name == "WorkerCount" and s.labels.get("ConnectorName") == NAME
    )  # fmt: skip


async def test_workers_come_with_a_load_and_go_with_it(world: World, tmp_path: Path) -> None:
    sdk, numbers = world.sdk, Numbers(tmp_path / "numbers.txt", BATCH)
    config = file_source(numbers.path, TOPIC) | COSTLY
    arn = sdk.create_connector(**connector(NAME, world.bootstrap, config, capacity=CAPACITY))["connectorArn"]
    first = await world.state(arn, "RUNNING")
    dedicated = "mc-" + arn.rpartition("/")[2].rpartition("-")[0].replace("-", "")

    async def has(workers: int, tasks: int) -> bool:
        described: dict[str, Any] = sdk.describe_connector(connectorArn=arn)
        assert described["connectorState"] == "RUNNING", described
        assert (described["capacity"], described["connectorConfiguration"]) == (CAPACITY, config)
        shown = await scaled.shown() == (workers, tasks, config["tasks.max"])
        return shown and await worker_count(world) == workers

    async with channel(world.keelman.system["gateway"]) as link:
        scaled = Scaled(Dedicated(link), dedicated)
        await eventually(lambda: has(1, 2), every=1.0, what="it has the tasks of one worker")
        async with numbers.load():
            out = await scaled.scaled(2)
            await eventually(lambda: has(2, 3), every=1.0, what="it has the tasks of two, as many as it may")
        back = await scaled.scaled(1)
        await eventually(lambda: has(1, 2), every=1.0, what="it has those of one again")
        for step, reason in ((out, "above 12 %"), (back, "below 6 %")):
            assert reason in str(step), step
    assert sdk.list_connector_operations(connectorArn=arn)["connectorOperations"] == [], "none that a client began"
    assert sdk.describe_connector(connectorArn=arn)["currentVersion"] == first["currentVersion"]

    async def all_copied() -> bool:
        return len(await asyncio.to_thread(messages, world.bootstrap, TOPIC)) >= numbers.count

    await eventually(all_copied, every=2.0, what="all numbers are copied")
    ints = [int(message.value() or b"") for message in await asyncio.to_thread(messages, world.bootstrap, TOPIC)]
    assert ints == list(range(numbers.count)), "none is lost, and none twice"
    sdk.delete_connector(connectorArn=arn)
    await world.gone(arn)
