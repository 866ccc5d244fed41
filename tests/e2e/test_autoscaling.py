"""A whole system's worker clusters are scaled by a load and by its end, and lose and repeat nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from keelman.api.connect.v1.autoscale_pb2 import Autoscale
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedCapacity
from keelman.api.connect.v1.operation_pb2 import OPERATION_STATE_SUCCEEDED
from keelman.model.errors import Unavailable
from keelman.rpc.channels import channel
from keelman.rpc.times import to_duration
from support.cli.system import Keelman
from support.copying.loads import COSTLY, Numbers
from support.eventually import eventually
from support.kafka.topics import messages
from support.state.dedicated import Dedicated, file_source
from support.state.scaled import Scaled

pytestmark = pytest.mark.e2e
TOPIC, BATCH = "numbers", 20_000


@pytest.mark.slow
async def test_a_load_scales_out_and_its_end_in(own: Keelman, tmp_path: Path) -> None:
    """The state service is killed while it scales in."""
    await own.ok("up", "--detach", "--free-ports")
    servers = (await own.item("bc", "default"))["status"]["bootstrap_servers"]
    numbers = Numbers(tmp_path / "numbers.txt", BATCH)
    autoscale = Autoscale(
        min_workers=1, max_workers=2, scale_in_cpu_percent=6, scale_out_cpu_percent=12, tasks_per_worker=2, max_tasks=3,
        sample_period=to_duration(2), samples=2, cool_down=to_duration(5),
    )  # fmt: skip
    async with channel(own.system["state"]) as link:
        dedicated = Dedicated(link)
        scaled = Scaled(dedicated, "grown")
        capacity = DedicatedCapacity(autoscale=autoscale)
        config = file_source(numbers.path, TOPIC, **COSTLY)
        answer = await dedicated.create("grown", config, servers, capacity=capacity)
        assert (await dedicated.ended(answer, seconds=300)).state == OPERATION_STATE_SUCCEEDED, own.logs()
        await eventually(lambda: _is(scaled, (1, 2, "1")), what="it has the tasks of one worker")
        begun = time.time()
        async with numbers.load():
            out = await scaled.scaled(2)
            await eventually(lambda: _is(scaled, (2, 3, "1")), what="it has the tasks of two workers")
            await eventually(lambda: _has_tasks(scaled, "3"), what="its workers report its tasks.max")
        seconds = (out.create_time.ToNanoseconds() / 1e9 - begun, out.end_time.seconds - out.create_time.seconds)
        print(f"scale out begun {seconds[0]:.1f} s after the load, done {seconds[1]} s later")
        cluster = await own.item("wc", "grown")
        assert "above 12 %" in cluster["status"]["scaling"]["reason"], cluster["status"]

        async def begins() -> bool:
            return (await scaled.steps())[0].name != out.name

        await eventually(begins, what="it scales in")
        os.kill(own.pid_of("state"), signal.SIGKILL)
        await scaled.scaled(1)
        await eventually(lambda: _is(scaled, (1, 2, "1")), what="it has the tasks of one worker again")
        cluster = await own.item("wc", "grown")
        assert "below 6 %" in cluster["status"]["scaling"]["reason"], cluster["status"]

    async def all_copied() -> bool:
        actual_messages = await asyncio.to_thread(messages, servers, TOPIC)
        return len(actual_messages) >= numbers.count

    await eventually(all_copied, what="all numbers are copied")
    ints = [int(message.value()) for message in await asyncio.to_thread(messages, servers, TOPIC)]
    assert ints == list(range(numbers.count))


async def _is(scaled: Scaled, expected: tuple[int, int, str]) -> bool:
    with contextlib.suppress(Unavailable):
        return await scaled.shown() == expected
    return False


async def _has_tasks(scaled: Scaled, expected: str) -> bool:
    """Whether its workers report this number; there is no report for a moment after each change of them."""
    connector = (await scaled.dedicated.get(scaled.name)).status.connector
    return bool(connector.uid) and connector.config["tasks.max"] == expected
