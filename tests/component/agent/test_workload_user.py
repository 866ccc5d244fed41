"""Workloads that run as a user of their own, under an agent that is root."""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
import stat
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from keelman.api.node.v1 import agent_service_pb2 as agent_messages
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.api.node.v1.workload_pb2 import ResourceLimits
from keelman.rpc.channels import channel
from keelman.runtime.home import SharedHome, cache_folder
from keelman.testing.eventually import eventually
from support.agent_kit import REMOVED, Node, healthy, running_node, workload
from support.agent_world import real_workloads

pytestmark = [
    pytest.mark.component,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root runs processes as others"),
]
NOBODY = pwd.getpwnam("nobody")


def reachable(aside: Path) -> tuple[str, ...]:
    """What an agent is to be started by so that others can run its Python, where that is in root's own folder."""
    hidden = Path.home()
    if not Path(sys.executable).resolve().is_relative_to(hidden) or hidden.stat().st_mode & stat.S_IXOTH:
        return ()
    shown = {Path(sys.base_prefix), cache_folder()}
    aside.mkdir(exist_ok=True)
    script = f"set -e; mount --bind {hidden} {aside}; mount -t tmpfs -o mode=755 none {hidden}; "
    script += "".join(
        f"mkdir -p {one}; mount --bind {aside / one.relative_to(hidden)} {one}; " for one in shown if one.exists()
    )
    return ("unshare", "--mount", "sh", "-c", f'{script} exec "$@"', "sh")


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    # Not below pytest's own folder, which each start of pytest closes to others.
    with tempfile.TemporaryDirectory(prefix="keelman-user-") as folder:
        Path(folder).chmod(0o711)
        async with running_node(Path(folder)) as made:
            made.home = SharedHome(made.home.root)
            yield made


async def test_its_process_folder_socket_and_log_are_the_users(node: Node) -> None:
    limits = ResourceLimits(memory_bytes=2**30, cpus=1)
    node.state.assign(workload(script=healthy(node), python="-u", limits=limits))
    agent = node.agent(prefix=reachable(node.folder / "aside"), workload_user="nobody", limits="watchdog")
    status = await eventually(lambda: agent.poll() is not None or node.state.in_state("worker/demo/0", "RUNNING"))
    assert agent.poll() is None
    assert not isinstance(status, bool)
    process = psutil.Process(status.pid)
    assert set(process.uids()) == {NOBODY.pw_uid}
    assert set(process.gids()) == {NOBODY.pw_gid}
    folder = node.home.workload("worker/demo/0")
    for path in (folder, folder / "log", folder / "tmp", node.home.socket("worker/demo/0")):
        assert path.stat().st_uid == NOBODY.pw_uid, path
        assert path.stat().st_mode & 0o077 == 0 or stat.S_ISSOCK(path.stat().st_mode), path
    assert (folder / "record.json").stat().st_uid == 0
    environment = process.environ()
    assert (environment["USER"], environment["KEELMAN_CACHE"]) == ("nobody", str(node.home.root / "cache"))
    async with channel(node.address) as made:
        asked = agent_messages.StreamLogsRequest(workload="worker/demo/0", tail_lines=1)
        await eventually(lambda: b"line 300\n" in (folder / "log").read_bytes())
        assert [m.lines async for m in AgentServiceStub(made).StreamLogs(asked)] == [b"line 300\n"]
    # Adopted by the next agent, and taken away with all of its files.
    await node.end(agent, signal.SIGKILL)
    node.agent(prefix=reachable(node.folder / "aside"), workload_user="nobody", limits="watchdog")
    await eventually(lambda: len(node.state.first_reports) == 2)
    assert node.state.statuses["worker/demo/0"].pid == status.pid
    node.state.assign(workload(goal=REMOVED, generation=2))
    await eventually(lambda: node.state.in_state("worker/demo/0", "REMOVED"))
    assert not folder.exists()


async def test_a_worker_and_its_spark_service_run_as_that_user(bootstrap: str, node: Node) -> None:
    spark, worker = real_workloads(bootstrap, "as-nobody")
    node.state.assign(spark, worker)
    agent = node.agent(prefix=reachable(node.folder / "aside"), workload_user="nobody")
    names = (spark.name, worker.name)
    await eventually(
        lambda: agent.poll() is not None or all(node.state.in_state(name, "RUNNING") for name in names), seconds=240
    )
    assert agent.poll() is None
    for name in names:
        process = psutil.Process(node.state.statuses[name].pid)
        for one in (process, *process.children(recursive=True)):
            assert set(one.uids()) == {NOBODY.pw_uid}, one.cmdline()
        assert (node.home.workload(name) / "settings.toml").stat().st_uid == NOBODY.pw_uid


async def test_a_user_that_cannot_enter_the_home_is_refused_at_the_start(node: Node) -> None:
    node.home.root.mkdir(mode=0o700)
    agent = node.agent(prefix=reachable(node.folder / "aside"), workload_user="nobody")
    assert await asyncio.to_thread(agent.wait, 120) == 1
    assert "agent.workload_user: 'nobody' is not legal: a user who can run" in node.log_of_agent()
    assert "Permission denied" in node.log_of_agent()
