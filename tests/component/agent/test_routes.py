"""A worker cluster with routes: its worker and slots reach brokers under a name that only they can resolve."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import psutil
import pytest

from keelman.runtime.processes.private_hosts import HOSTS, with_routes
from support.agent.agents import SLEEP, running_node, workload
from support.cli.system import FILE, STRING, Keelman
from support.eventually import eventually

pytestmark = pytest.mark.component
ROUTE = "kafka.routes.example"


def hosts_of(pid: int) -> str:
    """The hosts file that a process sees."""
    return Path(f"/proc/{pid}/root{HOSTS}").read_text()


def slots(keelman: Keelman) -> list[int]:
    return [p.pid for p in keelman.processes() if " ".join(p.cmdline()).startswith("keelman slot-")]


@pytest.fixture
def possible(tmp_path: Path) -> None:
    file = tmp_path / "possible.json"
    file.write_text(json.dumps({ROUTE: "127.0.0.1"}))
    tried = subprocess.run(with_routes((), file), capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"this host cannot: {tried.stderr}")


async def worker(keelman: Keelman, cluster: str) -> dict:
    (actual_worker,) = await keelman.items("workers", "--cluster", cluster)
    return actual_worker


@pytest.mark.usefixtures("possible")
async def test_worker_and_slots_have_them_alone_and_after_another_agent_too(tmp_path: Path) -> None:
    keelman, lines, before = Keelman(tmp_path / "home"), tmp_path / "lines", Path(HOSTS).read_text()
    try:
        await keelman.ok("up", "--detach", "--free-ports")
        port = (await keelman.item("bc", "default"))["status"]["bootstrap_servers"].rpartition(":")[2]
        await keelman.ok("create", "bc", "far", "--bootstrap-servers", f"{ROUTE}:{port}")
        values = (f"key.converter={STRING}", f"value.converter={STRING}")
        words = [word for value in values for word in ("--set", value)]
        create = ("create", "wc", "wc", "--broker-cluster", "far", "--route", f"{ROUTE}=127.0.0.1")
        await keelman.ok(*create, *words, "--start", "--wait")
        lines.write_text("one\n")
        keys = (f"connector.class={FILE}SourceConnector", f"file={lines}", "topic=lines")
        await keelman.ok("create", "cn", "wc/lines", *(w for key in keys for w in ("--set", key)), "--wait")

        async def copied(count: int) -> bool:
            ran = await keelman.run("peek", "lines", "--broker-cluster", "default", "-o", "json")
            return ran.code == 0 and len(json.loads(ran.out)["records"]) == count

        await eventually(lambda: copied(1), what="a line is copied")
        pid = int((await worker(keelman, "wc"))["process"]["pid"])
        for slot in (pid, *slots(keelman)):
            assert f"127.0.0.1 {ROUTE}" in hosts_of(slot)
        assert Path(HOSTS).read_text() == before
        assert all(hosts_of(keelman.pid_of(name)) == before for name in ("state", "gateway", "agent"))

        psutil.Process(keelman.pid_of("agent")).kill()
        await eventually(lambda: psutil.pid_exists(keelman.pid_of("agent")), what="another agent")
        with lines.open("a") as growing:
            growing.write("two\n")
        await eventually(lambda: copied(2), what="another line is copied")
        assert int((await worker(keelman, "wc"))["process"]["pid"]) == pid

        await keelman.ok("update", "wc", "wc", "--route", f"{ROUTE}=127.0.0.1", "--route", "db=10.9.8.7", "--wait")
        changed = int((await worker(keelman, "wc"))["process"]["pid"])
        assert changed != pid
        assert "10.9.8.7 db\n" in hosts_of(changed)
    finally:
        await keelman.cleaned()


RESOLVES = f"""
import socket, time
print(socket.getaddrinfo({ROUTE!r}, 1)[0][4][0], flush=True)
time.sleep(600)
"""
NO_FILES = 'mount --bind "$0" /etc/nsswitch.conf && exec "$@"'
"""Has the agent and all that it starts look for hosts elsewhere than in files."""


@pytest.mark.usefixtures("possible")
async def test_an_agent_gives_them_to_one_workload_alone(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.state.assign(workload(script=RESOLVES, routes={ROUTE: "10.9.8.7"}), workload("worker/demo/1", SLEEP))
        node.agent()
        await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
        await eventually(lambda: "10.9.8.7" in (node.home.workload("worker/demo/0") / "log").read_text())
        other = await eventually(lambda: node.state.in_state("worker/demo/1", "STARTING"))
        assert ROUTE not in hosts_of(other.pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have another nsswitch.conf")
async def test_where_they_would_not_hold_the_workload_fails_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "nsswitch.conf").write_text("hosts: nosuch\n")
    async with running_node(tmp_path) as node:
        node.state.assign(workload(script=RESOLVES, routes={ROUTE: "10.9.8.7"}), workload("worker/demo/1", SLEEP))
        node.agent(prefix=("unshare", "-m", "sh", "-c", NO_FILES, str(tmp_path / "nsswitch.conf")))
        failed = await eventually(lambda: node.state.in_state("worker/demo/0", "FAILED"))
        assert failed.reason == "ROUTES_NOT_POSSIBLE"
        assert f"does not look into {HOSTS} first: '{ROUTE}' is not 10.9.8.7" in failed.message
        assert not (node.home.workload("worker/demo/0") / "record.json").exists()
        await eventually(lambda: node.state.in_state("worker/demo/1", "STARTING"))
