"""Every process started as a user starts it; 100,000 lines copied while one process after the other is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from keelman.kafka.data_topics import create_topic
from support.cli.system import FILE, LOOK_SECONDS, STRING, Keelman, numbered
from support.copying.growing import Growing
from support.eventually import eventually

pytestmark = pytest.mark.e2e

LINES = 100_000


@dataclass(frozen=True, slots=True)
class Fault:
    """A process to kill, chosen beforehand so that the kill takes no time, and the check of its return."""

    process: psutil.Process
    back: Callable[[], Awaitable[bool]]


async def workload(keelman: Keelman, prefix: str) -> dict[str, Any]:
    answer = next(w for w in await keelman.items("workloads") if w["name"].startswith(prefix))
    status: dict[str, Any] = answer["status"]
    return status


def runs_again(keelman: Keelman, prefix: str, before: int) -> Callable[[], Awaitable[bool]]:
    async def back() -> bool:
        now = await workload(keelman, prefix)
        return now.get("pid", before) != before and now["state"] == "WORKLOAD_STATE_RUNNING"

    return back


def jvm_of(pid: int) -> psutil.Process | None:
    return next((p for p in psutil.Process(pid).children(recursive=True) if p.name() == "java"), None)


async def worker(keelman: Keelman) -> Fault:
    pid = (await workload(keelman, "worker/"))["pid"]
    return Fault(psutil.Process(pid), runs_again(keelman, "worker/", pid))


async def spark_jvm(keelman: Keelman) -> Fault:
    """The service outlives its JVM and starts another."""
    pid = (await workload(keelman, "spark/"))["pid"]
    before = jvm_of(pid)
    assert before is not None

    async def back() -> bool:
        now = jvm_of(pid)
        return now is not None and now != before and await both_run(keelman)

    return Fault(before, back)


async def running(keelman: Keelman) -> list[dict[str, Any]]:
    return [r for r in await keelman.items("copy-runs") if r["state"] == "COPY_RUN_STATE_RUNNING"]


async def slot(keelman: Keelman) -> Fault:
    await eventually(lambda: both_run(keelman), every=LOOK_SECONDS, what="both copy runs are in their slots")
    slots = {r["slot"] for r in await running(keelman)}
    # The JVM's Python child is the daemon; its children are the slots' reapers.
    jvm = jvm_of((await workload(keelman, "spark/"))["pid"])
    assert jvm is not None
    titles = {f"keelman {name}" for name in slots}
    victim = next(p for p in jvm.children(recursive=True) if " ".join(p.cmdline()).strip() in titles)

    async def back() -> bool:
        return await both_run(keelman) and {r["slot"] for r in await running(keelman)} != slots

    return Fault(victim, back)


async def both_run(keelman: Keelman) -> bool:
    return {r["connector"] for r in await running(keelman)} == {"source", "sink"}


async def agent(keelman: Keelman) -> Fault:
    before = keelman.pid_of("agent")

    async def all_pids() -> dict[str, int]:
        """Of the workloads that shall run: other tests leave stopped ones. Raises LookupError while one is started
        again."""
        workloads = [w for w in await keelman.items("workloads") if w["goal"] == "WORKLOAD_GOAL_RUNNING"]
        return {workload["name"]: workload["status"]["pid"] for workload in workloads}

    pids = await eventually(all_pids, every=LOOK_SECONDS)

    async def back() -> bool:
        if keelman.pid_of("agent") == before:
            return False
        nodes = await keelman.items("nodes")
        assert await all_pids() == pids, "the next agent takes the workloads over as they are"
        return [n["status"]["state"] for n in nodes] == ["NODE_STATE_ONLINE"]

    return Fault(psutil.Process(before), back)


async def test_faults_lose_and_double_nothing(keelman: Keelman, tmp_path: Path) -> None:
    path, output = tmp_path / "input.txt", tmp_path / "output.txt"
    growing = Growing(path, output)
    created = await keelman.ok(
        *("create", "wc", "numbers", "--start", "--wait"),
        *("--property", "offset.flush.interval.ms=1000", "--property", "keelman.park.after.ms=-1"),
    )
    assert created == "worker-cluster/numbers\n"
    brokers = await keelman.item("bc", "default")
    await create_topic({"bootstrap.servers": brokers["status"]["bootstrap_servers"]}, "numbers", partitions=1)
    for side, topic in (("Source", "topic"), ("Sink", "topics")):
        file = path if side == "Source" else output
        words = [f"connector.class={FILE}{side}Connector", "tasks.max=1", f"file={file}", f"{topic}=numbers"]
        words += [f"key.converter={STRING}", f"value.converter={STRING}"]
        settings = [w for word in words for w in ("--set", word)]
        await keelman.ok("create", "connector", f"numbers/{side.lower()}", *settings, "--wait")

    faults = (worker, spark_jvm, slot, agent)
    share = LINES // len(faults)
    for number, prepare in enumerate(faults):
        fault, middle = await prepare(keelman), number * share + share // 2
        async with asyncio.TaskGroup() as group:
            feeding = group.create_task(growing.grow((number + 1) * share))
            await eventually(
                lambda middle=middle: growing.copied() >= middle,
                every=0.01,
                what=f"{middle} lines are there",
            )
            fault.process.kill()
            assert not feeding.done(), f"the {prepare.__name__} was to be killed in the middle"
            await eventually(fault.back, every=LOOK_SECONDS, what=f"the {prepare.__name__} is back")
    await eventually(lambda: growing.copied() >= LINES, what="all lines are there")
    assert output.read_bytes() == path.read_bytes() == numbered(0, LINES)

    connectors = {c["name"]: c for c in await keelman.items("connectors", "--cluster", "numbers")}
    assert {c["state"] for c in connectors.values()} == {"CONNECTOR_STATE_RUNNING"}
    assert set(connectors) == {"source", "sink"}
    await keelman.ok("delete", "connector", "numbers/source", "--yes")
    await keelman.ok("delete", "connector", "numbers/sink", "--yes")
    await keelman.ok("stop", "wc", "numbers", "--wait")
    assert (await keelman.item("wc", "numbers"))["status"]["state"] == "CLUSTER_STATE_STOPPED"
    assert output.read_bytes() == path.read_bytes()
