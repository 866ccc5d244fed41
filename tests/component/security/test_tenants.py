"""Tenants of one node: none reaches another's files, processes, sockets or Spark service."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from keelman.api.node.v1.workload_pb2 import Workload
from keelman.model.workload import spark_name
from keelman.runtime.home import SharedHome, cache_folder
from support.agent.agents import Node, running_node
from support.agent.other_users import reachable
from support.agent.workloads import real_workloads
from support.eventually import eventually

pytestmark = [
    pytest.mark.component,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root runs processes as others"),
]
FIRST = 600_000
SERVICES = ("state", "trust", "agent", "logs")
"""The folders of the installation's services in a home."""
USERS = f"{FIRST}-{FIRST + 15}"


@dataclass(frozen=True)
class Tenant:
    """A tenant with one worker and its Spark service."""

    name: str
    port: int
    spark: str
    worker: str


def workloads_of(tenant: str, bootstrap: str) -> tuple[Tenant, list[Workload]]:
    spark, worker = real_workloads(bootstrap, tenant)
    spark.name = spark_name("n1", tenant)
    spark.spec.spark.port, spark.spec.spark.tenant = 0, tenant
    worker.spec.worker.spark_address, worker.spec.worker.tenant = "", tenant
    return Tenant(tenant, worker.spec.worker.port, spark.name, worker.name), [spark, worker]


@pytest.fixture
async def node(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Node]:
    monkeypatch.setenv("KEELMAN_CACHE", str(cache_folder()))
    with tempfile.TemporaryDirectory(prefix="keelman-tenants-") as folder:
        Path(folder).chmod(0o711)
        async with running_node(Path(folder)) as new_running_node:
            new_running_node.home = SharedHome(new_running_node.home.root, tenants_apart=True)
            yield new_running_node


@pytest.fixture
async def pair(bootstrap: str, node: Node) -> tuple[Tenant, Tenant]:
    """Two tenants of one node, running."""
    for folder in SERVICES:
        (node.home.root / folder).mkdir(parents=True)
        (node.home.root / folder / "secret").write_text("secret")
    (a, first), (b, second) = (workloads_of(name, bootstrap) for name in ("tenant-a", "tenant-b"))
    node.state.assign(*first, *second)
    agent = node.agent(prefix=reachable(node.folder / "aside"), tenant_users=USERS, trust="mesh")
    names = (a.spark, a.worker, b.spark, b.worker)
    await eventually(lambda: agent.poll() is not None or all(node.state.in_state(name, "RUNNING") for name in names))
    assert agent.poll() is None, node.log_of_agent()
    return a, b


def pid_of(node: Node, workload: str) -> int:
    return node.state.statuses[workload].pid


def run_as(node: Node, tenant: Tenant, program: str, *arguments: str) -> list[str]:
    """Runs a program as code of a tenant's connector could run: as its user, where its slots see files. Returns the
    lines that it printed."""
    pid = pid_of(node, tenant.spark)
    uid = psutil.Process(pid).uids().real
    enter = ("nsenter", f"--target={pid}", "--mount", f"--setuid={uid}", f"--setgid={uid}")
    command = [*enter, sys.executable, "-I", "-c", program, *arguments]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


ATTACKS = """
import ctypes, json, os, socket, subprocess, sys
facts = json.loads(sys.argv[1])
def tried(name, attack):
    try:
        got = attack()
    except (OSError, KeyError) as error:
        got = None
    print(json.dumps([name, got]))
def text(path):
    with open(path, "rb") as file:
        return file.read(100).decode("latin-1")
def connected(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        return "connected"
def answered(port):
    with socket.create_connection(("127.0.0.1", port), timeout=300) as client:
        client.sendall(b"GET /connectors HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
        return client.recv(100).decode("latin-1") or None
def written(path):
    with open(path, "w") as file:
        file.write("x")
    return "written"
def traced(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, 0, 0):
        raise OSError(ctypes.get_errno(), "ptrace")
    return "traced"
for file in facts["files"]:
    tried(f"read {file}", lambda: text(file))
for folder in facts["folders"]:
    tried(f"list {folder}", lambda: ",".join(os.listdir(folder)) or None)
    tried(f"write {folder}", lambda: written(f"{folder}/x.py"))
for pid in facts["pids"]:
    tried(f"environ {pid}", lambda: text(f"/proc/{pid}/environ"))
    tried(f"memory {pid}", lambda: text(f"/proc/{pid}/mem"))
    tried(f"descriptors {pid}", lambda: ",".join(os.listdir(f"/proc/{pid}/fd")))
    tried(f"root {pid}", lambda: ",".join(os.listdir(f"/proc/{pid}/root/tmp")))
    tried(f"kill {pid}", lambda: os.kill(pid, 0) or "may kill")
    tried(f"trace {pid}", lambda: traced(pid))
for path in facts["sockets"]:
    tried(f"socket {path}", lambda: connected(path))
for port in facts["ports"]:
    tried(f"port {port}", lambda: answered(port))
su = subprocess.run(["su", "-c", "id"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
tried("become root", lambda: su.stdout.decode() or None)
tried("memory file", lambda: text("/dev/shm/of-tenant-b"))
tried("temporary file", lambda: text("/tmp/of-tenant-b"))
"""
GET = """
import sys, urllib.request
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/connectors", timeout=300).read().decode())
"""
OWN = """
import json, os, sys
facts = json.loads(sys.argv[1])
for file in facts["files"]:
    with open(file, "rb") as opened:
        print(json.dumps([file, len(opened.read())]))
"""


def check_apart(node: Node, a: Tenant, b: Tenant) -> None:
    """Tries, as code of one tenant, to reach what another has."""
    home = node.home
    leave = "import os\nfor f in ('/tmp/of-tenant-b', '/dev/shm/of-tenant-b'):\n open(f, 'w').write('secret of b')"
    run_as(node, b, leave)
    theirs, spark = home.workload(b.worker), home.workload(b.spark)
    jvm = next(p for p in psutil.Process(pid_of(node, b.spark)).children(recursive=True) if p.name() == "java")
    facts = {
        "files": [
            *(str(theirs / name) for name in ("worker.properties", "settings.toml", "log", "record.json")),
            str(spark / "settings.toml"), str(spark / "log"), str(home.tenants), "/etc/shadow",
            *(str(home.root / folder / "secret") for folder in SERVICES),
        ],
        "folders": [*map(str, (theirs, spark, theirs / "tmp", home.tenant_caches / str(FIRST + 1)))],
        "pids": [pid_of(node, b.worker), pid_of(node, b.spark), jvm.pid, os.getpid()],
        "sockets": [str(home.socket(b.worker)), str(home.socket(b.spark)), str(home.socket("agent"))],
        "ports": [b.port],
    }  # fmt: skip
    outcomes = [json.loads(line) for line in run_as(node, a, ATTACKS, json.dumps(facts))]
    assert len(outcomes) > 50
    assert [outcome for outcome in outcomes if outcome[1] is not None] == []
    # The same by itself: the files that are refused above exist, and only the user is the reason.
    own = {"files": [str(home.workload(b.worker) / "worker.properties"), "/tmp/of-tenant-b", "/dev/shm/of-tenant-b"]}
    assert all(json.loads(line)[1] for line in run_as(node, b, OWN, json.dumps(own)))


def check_users(node: Node, pair: tuple[Tenant, Tenant]) -> None:
    """Each tenant's processes are its user's, and its Spark service listens on a Unix socket."""
    for number, tenant in enumerate(pair):
        for workload in (tenant.spark, tenant.worker):
            process = psutil.Process(pid_of(node, workload))
            for one in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):  # some are short
                    assert set(one.uids()) == {FIRST + number}, one.cmdline()
        assert run_as(node, tenant, GET, str(tenant.port)) == ["[]"]


async def check_connectors(node: Node, a: Tenant, b: Tenant) -> None:
    """A connector copies files that all may read, and fails for the files of another tenant."""
    lines = node.home.root / "lines.txt"
    lines.write_text("one\ntwo\n")
    files = {"open": lines, "closed": node.home.workload(b.worker) / "worker.properties"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{a.port}", timeout=300) as client:
        assert (await client.get("/connectors")).json() == []  # root's connections are admitted
        for name, file in files.items():
            config = {"connector.class": "FileStreamSource", "file": str(file), "topic": f"tenants-{name}"}
            answer = await client.put(f"/connectors/{name}/config", json=config)
            assert answer.status_code == 201, answer.text

        async def is_refused() -> bool:
            tasks = (await client.get("/connectors/closed/status")).json()["tasks"]
            return any("Permission denied" in task.get("trace", "") for task in tasks)

        async def is_copied() -> bool:
            offsets = (await client.get("/connectors/open/offsets")).json()["offsets"]
            return [entry["offset"]["position"] for entry in offsets] == [8]

        await eventually(is_refused)
        await eventually(is_copied)


async def test_tenants_of_a_node_are_apart(node: Node, pair: tuple[Tenant, Tenant]) -> None:
    check_users(node, pair)
    check_apart(node, *pair)
    await check_connectors(node, *pair)
