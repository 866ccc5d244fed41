"""A secret from its creation to a task that copies with it: state, an agent, a worker, Spark and a broker, all real."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from keelman.agent.trust.secrets import SECRETS
from keelman.api.connect.v1 import secret_service_pb2 as pb
from keelman.api.node.v1.workload_pb2 import WorkloadState
from keelman.connect.config.providers import SECRETS_OF_OTHERS
from keelman.kafka.browsing import last_records
from keelman.model.errors import NotFound
from keelman.rpc.channels import channel
from keelman.runtime.home import Home
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.processes.process_trees import is_marked, kill_all
from keelman.workers.configurations import DEFAULT_PROPERTIES
from support.eventually import eventually
from support.state.service import Clients, StateProcess, free_range

pytestmark = pytest.mark.component
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
WORKER = "worker/w/0"


@contextmanager
def running_agent(home: Home, state: StateProcess) -> Iterator[None]:
    """The agent of node n1; none of its processes is left behind."""
    command = [sys.executable, "-m", "keelman.agent", "run", "--node", "n1", "--home", str(home.root)]
    command += ["--port", str(free_ports(1)[0]), "--state-address", f"127.0.0.1:{state.port}"]
    with (home.root / "agent.log").open("ab") as log:
        agent = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    except BaseException:
        print((home.root / "agent.log").read_text()[-6000:])
        for file in home.workloads.glob("*/log"):
            print(file, file.read_text()[-3000:])
        raise
    finally:
        agent.kill()
        agent.wait(60)
        folders = list(home.workloads.glob("*"))
        kill_all([p for p in psutil.pids() if any(is_marked(p, f) for f in folders)])


async def test_a_secret_reaches_tasks_and_a_new_value_only_those_that_use_it(
    tmp_path: Path, bootstrap: str, name: str
) -> None:
    home, source = Home(tmp_path), tmp_path / "lines"
    source.write_text("one\n")
    client = {"bootstrap.servers": bootstrap}
    ports = ("--worker-ports", free_range(4), "--spark-ports", free_range(4), "--spark-master", "local[4]")
    state = StateProcess(tmp_path / "state", *ports)
    await state.start()
    async with channel(f"127.0.0.1:{state.port}") as connection:
        clients = Clients(connection)
        try:
            with running_agent(home, state):
                values = {"topic": f"{name}-first", "password": "canary-0815"}
                await clients.secrets.CreateSecret(pb.CreateSecretRequest(name="prod/orders", values=values))
                await clients.create_external("default", bootstrap)
                properties = {
                    "config.providers": "aws", "config.providers.aws.class": SECRETS_OF_OTHERS[0],
                    "config.providers.aws.param.names": "prod/*", "group.id": name, **DEFAULT_PROPERTIES,
                } | {f"{what}.storage.topic": f"{name}-{what}" for what in ("config", "offset", "status")}  # fmt: skip
                await clients.create_workers("w", count=1, properties=properties)
                await clients.start_workers("w")

                async def running() -> Any:
                    workload = (await clients.workloads()).get(WORKER)
                    return (
                        workload if workload and workload.status.state == WorkloadState.WORKLOAD_STATE_RUNNING else None
                    )

                worker = await eventually(running)
                url = f"http://127.0.0.1:{worker.spec.worker.port}"
                file = home.workload(WORKER) / SECRETS
                assert json.loads(file.read_text()) == {"prod/orders": values}
                assert file.stat().st_mode & 0o777 == 0o600
                assert not any(b"canary-0815" in f.read_bytes() for f in file.parent.glob("*.properties"))

                async def ask(method: str, path: str, body: Any = None) -> httpx.Response:
                    async with httpx.AsyncClient(timeout=300, trust_env=False) as asking:
                        return await asking.request(method, f"{url}{path}", json=body)

                config = {
                    "connector.class": SOURCE, "file": str(source), "topic": "${aws:prod/orders:topic}",
                    "password": "${aws:prod/orders:password}",
                }  # fmt: skip
                beside = {"connector.class": SOURCE, "file": str(source), "topic": f"{name}-beside"}
                for wrong, message in (("none:k", "There is no secret 'none'"), ("prod/orders:k", "has no key 'k'")):
                    answer = await ask("PUT", "/connectors/c/config", config | {"topic": f"${{aws:{wrong}}}"})
                    assert answer.status_code >= 400
                    assert message in answer.json()["message"]
                for connector, value in (("c", config), ("beside", beside)):
                    answer = await eventually(lambda c=connector, g=value: _put(ask, c, g))
                    assert "canary-0815" not in answer.text

                async def texts(topic: str) -> list[bytes | None]:
                    try:
                        return [last_record.value for last_record in await last_records(client, topic, 10, seconds=20)]
                    except NotFound:
                        return []

                async def has(topic: str, *lines: bytes) -> bool:
                    return await texts(topic) == list(lines)

                await eventually(lambda: has(f"{name}-first", b"one"))
                await eventually(lambda: has(f"{name}-beside", b"one"))
                runs = await _runs(clients)
                request = pb.UpdateSecretRequest(name="prod/orders", values=values | {"topic": f"{name}-second"})
                request.update_mask.paths.append("values")
                await clients.secrets.UpdateSecret(request)
                await eventually(lambda: json.loads(file.read_text())["prod/orders"]["topic"] == f"{name}-second")

                async def again() -> bool:
                    return (await _runs(clients))["c"] != runs["c"]

                await eventually(again)
                with source.open("a") as lines:
                    lines.write("two\n")
                await eventually(lambda: has(f"{name}-second", b"two"))
                assert await texts(f"{name}-first") == [b"one"]
                await eventually(lambda: has(f"{name}-beside", b"one", b"two"))
                assert (await _runs(clients))["beside"] == runs["beside"], "its task did not restart"
                assert (await clients.workloads())[WORKER].status.pid == worker.status.pid
                assert "canary-0815" not in (file.parent / "log").read_text()
        finally:
            await asyncio.shield(state.end())


async def _put(ask: Any, connector: str, config: dict[str, str]) -> httpx.Response | None:
    answer: httpx.Response = await ask("PUT", f"/connectors/{connector}/config", config)
    return answer if answer.status_code in (200, 201) else None


async def _runs(clients: Clients) -> dict[str, str]:
    """The copy run of each connector."""
    from keelman.api.copy.v1 import copy_run_service_pb2  # noqa: PLC0415

    answer = await clients.runs.ListCopyRuns(copy_run_service_pb2.ListCopyRunsRequest(include_ended=True))
    newest = sorted(answer.copy_runs, key=lambda run: run.create_time.ToNanoseconds())
    return {run.connector: run.uid for run in newest}
