"""A worker of Apache Kafka Connect behind TLS, a library and an admin port: it outlives its agent, ends in order."""

from __future__ import annotations

import os
import signal
import ssl
import zipfile
from pathlib import Path

import httpx
import pytest

from keelman.runtime.processes.ports import free_ports
from support.certificates import PASSWORD, Authority
from support.cli.system import FILE, LOOK_SECONDS, STRING, Keelman, numbered
from support.eventually import eventually
from support.java.kit import compiled, needs_java

pytestmark = [pytest.mark.e2e, needs_java()]


async def test_it_is_adopted_and_ends_in_order(own: Keelman, tmp_path: Path) -> None:
    classes, jar = await compiled(tmp_path / "classes"), tmp_path / "stamps.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in classes.rglob("*.class"):
            archive.write(file, file.relative_to(classes))
    authority = Authority()
    keys = authority.issue("worker", "127.0.0.1", "localhost").write_pkcs12(tmp_path / "keys.p12")
    (tmp_path / "ca.pem").write_text(authority.pem)
    trust = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    path = tmp_path / "in.txt"
    path.write_bytes(numbered(0, 100))

    await own.ok("up", "--detach", "--free-ports")
    await own.ok("create", "plugin", str(jar), "--name", "stamps", "--version", "1")
    (admin,) = free_ports(1)
    words = ["--engine", "kafka-connect", "--library", "stamps", "--count", "1", "--https", "--admin-port", str(admin)]
    for key, value in (("location", str(keys)), ("password", PASSWORD), ("type", "PKCS12")):
        for listener in ("listeners", "admin.listeners"):
            words += ["--set", f"{listener}.https.ssl.keystore.{key}={value}"]
    await own.ok("create", "wc", "java", *words)
    await own.ok("start", "wc", "java", "--wait")
    (url,) = (await own.item("wc", "java"))["status"]["rest_urls"]
    assert url.startswith("https://")
    config = {
        "connector.class": f"{FILE}SourceConnector",
        "file": str(path),
        "topic": "stamped",
        "key.converter": STRING,
        "value.converter": STRING,
        "topic.creation.default.replication.factor": "-1",
        "topic.creation.default.partitions": "1",
        "transforms": "stamp",
        "transforms.stamp.type": "acme.StampTransform",
    }
    async with httpx.AsyncClient(trust_env=False, verify=trust, timeout=300) as client:

        async def runs() -> bool:
            result = (await client.get(f"{url}/connectors/stamps/status")).json()
            return [entry["state"] for entry in result.get("tasks", [])] == ["RUNNING"]

        result = await client.put(f"{url}/connectors/stamps/config", json=config)
        assert result.status_code == 201, result.text
        await eventually(runs, what="its task runs with the library's transform")
        loggers = await client.get(f"https://127.0.0.1:{admin}/admin/loggers")
        assert loggers.status_code == 200, loggers.text
        assert (await client.get(f"{url}/admin/loggers")).status_code == 404, "it has a port of its own"

        (worker,) = await own.items("workers", "--cluster", "java")
        pid = int(worker["process"]["pid"])
        agent = own.pid_of("agent")
        os.kill(agent, signal.SIGKILL)
        await eventually(lambda: own.pid_of("agent") != agent, what="another agent has come")

        async def adopted() -> bool:
            (now,) = await own.items("workers", "--cluster", "java")
            return now["process"]["state"] == "WORKLOAD_STATE_RUNNING" and int(now["process"]["pid"]) == pid

        await eventually(adopted, every=LOOK_SECONDS, what="the same process is the new agent's")
        assert await runs(), "it has gone on"

    await own.ok("stop", "wc", "java", "--wait")
    assert not any("ConnectDistributed" in " ".join(p.cmdline()) for p in own.processes())
    logs = "".join(file.read_text(errors="replace") for file in own.home.glob("workloads/worker-java-0/log*"))
    (ended,) = [line for line in logs.splitlines() if "connect_ended" in line]
    assert "true" in ended.lower(), ended
