"""Dedicated connectors whose group has lost its coordinator, while the other two of three brokers answer."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from keelman.api.connect.v1.dedicated_connector_pb2 import DEDICATED_CONNECTOR_STATE_FAILED
from support.cli.dedicated_system import System
from support.cli.system import STRING
from support.eventually import eventually
from support.kafka.three_brokers import three_brokers
from support.state.dedicated import FILE, file_source

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
GONE = 1
"""The only broker that has groups."""
STRINGS = {"key.converter": STRING, "value.converter": STRING}


async def test_a_coordinator_that_alone_is_away_is_the_cause_until_it_is_back(system: System, tmp_path: Path) -> None:
    path, output, dedicated = tmp_path / "in.txt", tmp_path / "out.txt", system.dedicated
    path.write_text("one\n")
    sink = {"connector.class": f"{FILE}SinkConnector", "file": str(output), "topics": "lines", "tasks.max": "1"}

    async def failed(name: str, begun: float) -> float:
        """Seconds until it has failed since `begun`, with the cause."""

        async def has_failed() -> Any:
            status = (await dedicated.get(name)).status
            return status if status.state == DEDICATED_CONNECTOR_STATE_FAILED else None

        result = await eventually(has_failed, what=f"{name} has failed")
        assert result.code == "ClusterError.BrokerUnreachable", (result, system.keelman.logs())
        assert "coordinator of group" in result.message
        return time.monotonic() - begun

    async def runs(name: str) -> None:
        async def is_running() -> bool:
            return await dedicated.state(name) == "RUNNING"

        await eventually(is_running, what=f"{name} runs again by itself")

    async with three_brokers(tmp_path / "kafka", offsets_topic_num_partitions=1) as trio:
        await asyncio.to_thread(trio.create_groups, [GONE])
        await asyncio.to_thread(trio.create, "lines", [2, 3])
        for name, config in (("a-source", file_source(path, "lines")), ("a-sink", sink)):
            await system.done(await dedicated.create(name, config, trio.bootstrap, properties=STRINGS))
        await eventually(lambda: output.exists() and output.read_text() == "one\n", what="the line is copied")
        begun = time.monotonic()
        trio.freeze(GONE)
        try:
            took = list(await asyncio.gather(failed("a-source", begun), failed("a-sink", begun)))
            begun = time.monotonic()
            await dedicated.create("new", file_source(path, "t"), trio.bootstrap)
            took.append(await failed("new", begun))
        finally:
            trio.thaw(GONE)
        print("FAILED after", *(f"{seconds:.1f} s" for seconds in took))
        await asyncio.gather(runs("a-source"), runs("a-sink"))
        with path.open("a") as file:
            file.write("two\n")
        await eventually(lambda: output.read_text() == "one\ntwo\n", what="the next line is copied once")
        await system.deleted("a-source", "a-sink", "new")
    assert max(took) < 60, "30 s, on a machine that has nothing else to do"
