"""A worker cluster of Apache Kafka Connect: started, queried, given a connector, restarted and stopped as any other."""

from __future__ import annotations

import os
import signal
import zipfile
from pathlib import Path

import httpx
import pytest

from keelman.runtime.java import maven
from keelman.runtime.processes.ports import free_ports
from support import plugins
from support.cli.system import FILE, LOOK_SECONDS, STRING, Keelman, numbered
from support.eventually import eventually

pytestmark = pytest.mark.e2e
LIMIT = 1 << 30


async def mongo(folder: Path) -> Path:
    """MongoDB's plugin as an archive: it has no service files, so that Connect finds it by a scan."""
    jars = await maven.jars(maven.Lock.read(Path(plugins.__file__).with_name("mongo_connect.lock")))
    new_mongo = folder / "mongo.zip"
    with zipfile.ZipFile(new_mongo, "w") as archive:
        for jar in jars:
            archive.write(jar, f"mongo-2.0.1/lib/{jar.name}")
    return new_mongo


async def test_apaches_own_worker_has_the_same_life(own: Keelman, tmp_path: Path) -> None:
    await own.ok("up", "--detach", "--free-ports")
    await own.ok("create", "plugin", str(await mongo(tmp_path)), "--name", "mongo", "--version", "2.0.1")
    (metrics,) = free_ports(1)
    words = (
        "--engine",
        "kafka-connect",
        "--plugin",
        "mongo",
        "--count",
        "1",
        "--memory",
        "1GiB",
        "--metrics-port",
        str(metrics),
    )
    result = await own.run(
        "create", "wc", "java", *words, "--set", "keelman.cpus=2", "--set", "offset.flush.interval.ms=500"
    )
    assert result.code == 0, result
    assert "note: keelman.cpus: ignored: workers of Apache Kafka Connect know no keys of keelman's" in result.err
    await own.ok("start", "wc", "java", "--wait")
    assert not [w for w in await own.items("workloads") if w["name"].startswith("spark/")], "it needs no Spark"
    status = (await own.item("wc", "java"))["status"]
    (url,) = status["rest_urls"]
    file = own.home / "workloads" / "worker-java-0" / "worker.properties"
    assert (file.stat().st_mode & 0o777, "keelman." in file.read_text().replace(str(own.home), "")) == (0o600, False)

    path, output = tmp_path / "in.txt", tmp_path / "out.txt"
    path.write_bytes(numbered(0, 500))
    for side, topic in (("Source", "topic"), ("Sink", "topics")):
        keys = [f"connector.class={FILE}{side}Connector", "tasks.max=1", f"{topic}=java-lines"]
        keys += [f"file={path if side == 'Source' else output}"]
        keys += [f"key.converter={STRING}", f"value.converter={STRING}"]
        if side == "Source":  # managed brokers create no topics by themselves
            keys += ["topic.creation.default.replication.factor=-1", "topic.creation.default.partitions=1"]
        settings = [w for key in keys for w in ("--set", key)]
        await own.ok("create", "connector", f"java/{side.lower()}", *settings, "--wait")
    await eventually(lambda: output.exists() and output.read_bytes() == path.read_bytes(), what="copied")
    shown = {c["name"]: c["state"] for c in await own.items("connectors", "--cluster", "java")}
    assert shown == {"source": "CONNECTOR_STATE_RUNNING", "sink": "CONNECTOR_STATE_RUNNING"}
    gateway = own.system["http"]
    classes = await own.ok("get", "plugins", "--cluster", "java")
    assert "MirrorSource" in classes
    assert "MongoSource" in classes
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{url}/")).json()["version"] == "4.3.0"
        text = (await client.get(f"http://127.0.0.1:{metrics}/metrics")).text
        assert "kafka_connect_connect_worker_metrics_connector_count" in text, text[:2000]
        listed = (await client.get(f"{gateway}/clusters/java/connectors")).json()
    assert sorted(listed) == ["sink", "source"]

    (worker,) = await own.items("workers", "--cluster", "java")
    pid = int(worker["process"]["pid"])
    assert any("-Xmx614m" in " ".join(p.cmdline()) for p in own.processes())
    os.kill(pid, signal.SIGKILL)

    async def again() -> bool:
        (now,) = await own.items("workers", "--cluster", "java")
        running = now["process"]["state"] == "WORKLOAD_STATE_RUNNING"
        return running and int(now["process"]["pid"]) != pid

    await eventually(again, every=LOOK_SECONDS, what="it is started again")
    assert "connect_ready" in await own.ok("logs", "worker", "java/0", "--tail", "100000")
    await own.ok("stop", "wc", "java", "--wait")
    assert not any("ConnectDistributed" in " ".join(p.cmdline()) for p in own.processes())
