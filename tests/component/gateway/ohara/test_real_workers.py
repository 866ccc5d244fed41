"""Workers that run: created, started, extended, shrunk, stopped and deleted on real agents and a real broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from keelman.runtime.processes.ports import free_ports
from support.eventually import eventually
from support.gateway.ohara.machines import MACHINES, Machines, ohara_machines

pytestmark = pytest.mark.component


async def on(machines: Machines, *nodes: str) -> Any:
    """Waits until the cluster runs on exactly these nodes."""

    async def there() -> Any:
        answer = await machines.js.get("workers", "wk")
        assert "error" not in answer, f"{answer['error']}\n{machines.logs()}"
        assert (answer.get("state"), sorted(answer["aliveNodes"])) == ("RUNNING", list(nodes)), answer
        return answer

    return await eventually(there, what=f"it runs on {', '.join(nodes)}")


async def answers(url: str) -> httpx.Response | None:
    async with httpx.AsyncClient(trust_env=False, timeout=300) as client:
        try:
            return await client.get(url)
        except httpx.TransportError:
            return None


async def test_workers_run_where_they_are_told_to(tmp_path: Path, bootstrap: str) -> None:
    async with ohara_machines(tmp_path, bootstrap) as machines:
        js, (client_port, jmx_port, free_port) = machines.js, free_ports(3)
        ports = {"clientPort": client_port, "jmxPort": jmx_port, "freePorts": [free_port]}
        options = {"xmx": 1536, "producer.compression.type": "gzip", "jvm.performance.options": "-XX:+UseSerialGC"}
        fields = await js.create(
            "workers", name="wk", nodeNames=["node00", "node01"], brokerClusterKey="bk", **ports, **options
        )
        assert ports | options == {key: fields[key] for key in ports | options}
        await js.act("workers", "wk", "start")
        running = await on(machines, "node00", "node01")
        assert running["group.id"] == fields["group.id"]
        for node in ("node00", "node01"):
            at = f"http://{MACHINES[node]}"
            root = await answers(f"{at}:{client_port}/")
            assert root is not None
            assert root.json()["kafka_cluster_id"]
            metrics = await answers(f"{at}:{jmx_port}/metrics")
            assert metrics is not None
            assert "keelman_worker_info" in metrics.text
            assert await answers(f"{at}:{free_port}/") is None, "it is kept free"
        classes = await answers(f"http://{MACHINES['node01']}:{client_port}/connector-plugins")
        assert classes is not None
        assert any("FileStreamSource" in entry["class"] for entry in classes.json())

        await js.act("workers", "wk", "node02")
        await on(machines, "node00", "node01", "node02")
        answer = await js.send("DELETE", "/workers/wk/node00")
        assert answer.status_code == 204
        shrunk = await on(machines, "node01", "node02")
        assert shrunk["nodeNames"] == ["node01", "node02"]

        async def closed(node: str) -> bool:
            return await answers(f"http://{MACHINES[node]}:{client_port}/") is None

        await eventually(lambda: closed("node00"), what="the first node has no worker")
        await js.act("workers", "wk", "stop")
        stopped = await js.reaches("workers", "wk", None)
        assert stopped["aliveNodes"] == []
        for node in ("node01", "node02"):
            assert await closed(node)
        await js.delete("workers", "wk")
        assert await js.list("workers") == []
        again = await js.create("workers", name="wk", nodeNames=["node00"], brokerClusterKey="bk", **ports)
        assert again["clientPort"] == client_port
