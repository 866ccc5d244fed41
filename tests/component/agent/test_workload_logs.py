"""Logs of running workloads: cut by the agent while their processes keep writing, and followed over that."""

from __future__ import annotations

import asyncio
import signal

import pytest

from keelman.api.node.v1 import agent_service_pb2 as agent_messages
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.rpc.channels import channel
from keelman.runtime.logs.parts import Log
from support.agent.agents import Node, workload
from support.eventually import eventually

pytestmark = pytest.mark.component

WRITER = """
import time
n = 0
while True:
    for _ in range(20):
        print('line', n, flush=True)
        n += 1
    time.sleep(0.02)
"""


async def test_a_follower_gets_each_line_once_while_the_log_is_cut_and_the_agent_killed(node: Node) -> None:
    keeping = {"log_bytes": "4096", "log_parts": "100000"}
    node.state.assign(workload(script=WRITER))
    agent = node.agent(**keeping)
    await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    folder = node.home.workload("worker/demo/0")
    log = Log(folder / "log")
    request = agent_messages.StreamLogsRequest(workload="worker/demo/0", tail_lines=1_000_000, follow=True)
    got = b""
    for goes in (True, False):
        async with channel(node.address) as connection:
            parts = len(log.parts())

            async def follow(value: object = connection, parts: int = parts) -> bytes:
                lines = b""
                async for message in AgentServiceStub(value).StreamLogs(request, wait_for_ready=True):
                    lines += message.lines
                    if len(log.parts()) > parts + 5 and lines.count(b"\n") > 2000:
                        break
                return lines

            got = await asyncio.wait_for(follow(), 120)
        assert got.splitlines() == [b"line %d" % n for n in range(got.count(b"\n"))]
        if goes:
            await node.end(agent, signal.SIGKILL)
            agent = node.agent(**keeping)
    assert (folder / "log").stat().st_blocks * 512 < 200_000
