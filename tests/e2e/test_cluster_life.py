"""A cluster's whole life as a user sees it: created, grown, changed, cordoned, drained, killed and deleted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from keelman.cli.exits import FAILED
from keelman.kafka.data_topics import create_topic
from support.cli.system import FILE, STRING, Keelman
from support.copying.growing import STEP, Growing
from support.eventually import eventually

pytestmark = pytest.mark.e2e


async def feed(growing: Growing, over: asyncio.Event) -> None:
    """Appends lines to copy until the event is set."""
    while not over.is_set():
        await growing.grow(growing.written + STEP)


async def pids(keelman: Keelman) -> dict[str, int]:
    """The processes of the running workers, by worker."""
    actual_keelman = await keelman.items("workers")
    return {w["name"]: w["process"]["pid"] for w in actual_keelman if w["process"]["state"] == "WORKLOAD_STATE_RUNNING"}


async def copying(keelman: Keelman, path: Path, output: Path) -> Growing:
    """Creates a source and a sink that copy numbered lines from one file to another."""
    growing = Growing(path, output)
    servers = (await keelman.item("bc", "default"))["status"]["bootstrap_servers"]
    await create_topic({"bootstrap.servers": servers}, "life", partitions=1)
    for side, topic in (("Source", "topic"), ("Sink", "topics")):
        words = [f"connector.class={FILE}{side}Connector", "tasks.max=1", f"{topic}=life"]
        words += [f"file={path if side == 'Source' else output}"]
        words += [f"key.converter={STRING}", f"value.converter={STRING}"]
        settings = [w for word in words for w in ("--set", word)]
        await keelman.ok("create", "connector", f"life/{side.lower()}", *settings, "--wait")
    return growing


async def test_a_cluster_lives(own: Keelman, tmp_path: Path) -> None:
    path, output = tmp_path / "input.txt", tmp_path / "output.txt"
    await own.ok("up", "--detach", "--free-ports")
    node = own.system["node"]
    await own.ok(
        *("create", "wc", "life", "--count", "1", "--start", "--wait"),
        *("--set", "offset.flush.interval.ms=1000", "--set", "keelman.park.after.ms=-1"),
    )
    growing, over = await copying(own, path, output), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(feed(growing, over))
        try:
            scaled = await own.ok("scale", "wc", "life", "--count", "2", "--wait")
            assert "RUNNING 2/2 workers" in scaled
            before = await pids(own)
            updated = await own.ok("update", "wc", "life", "--set", "offset.flush.interval.ms=2000", "--wait")
            assert "RUNNING 2/2 workers" in updated
            after = await pids(own)
        finally:
            over.set()
    assert set(before) == set(after) == {"life/0", "life/1"}
    assert not set(before.values()) & set(after.values()), "each worker runs with the change"
    await eventually(lambda: growing.copied() >= growing.written, what="all is copied")
    assert output.read_bytes() == path.read_bytes(), "nothing lost, nothing doubled"

    await own.ok("label", "wc", "life", "team=blue")
    assert await own.ok("get", "wc", "-l", "team=blue", "-o", "name") == "worker-cluster/life\n"
    described = await own.ok("describe", "wc", "life")
    assert "team: blue" in described
    assert "offset.flush.interval.ms: '2000'" in described

    await own.ok("cordon", node)
    assert "cordoned" in await own.ok("get", "nodes")
    refused = await own.run("scale", "wc", "life", "--count", "3", "--wait", "--timeout", "5")
    assert (refused.code, "2/3 workers" in refused.err, node in refused.err) == (FAILED, True, True), refused
    await own.ok("scale", "wc", "life", "--count", "2", "--wait")
    drained = await own.ok("drain", node)
    assert drained.splitlines() == [
        f"node/{node} is draining",
        "  no other node takes the workloads that leave: no other node exists; stays: worker/life/0, worker/life/1",
        f"  pinned to node {node}, and so stays: broker/default/0",
    ]
    waited = await own.run("drain", node, "--wait")
    assert (waited.code, "no other node exists" in waited.err) == (FAILED, True), waited
    assert await pids(own) == after, "workloads without another node continue"
    await own.ok("uncordon", node)

    await own.ok("stop", "wc", "life", "--force", "--wait")
    await eventually(lambda: not any(map(psutil.pid_exists, after.values())), what="workers are gone")
    assert (await own.item("wc", "life"))["status"]["state"] == "CLUSTER_STATE_STOPPED"
    await own.ok("delete", "wc", "life", "--yes", "--wait")
    assert await own.items("wc") == []
    assert "life" in (await own.ok("get", "topics")), "a cluster's topics stay"
    await own.ok("down")
    assert own.processes() == []
