"""Workers as others reach them: https with certificates of clients, passwords, hostile requests, metrics and logs."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from aiokafka import AIOKafkaProducer
from prometheus_client.parser import text_string_to_metric_families

from keelman.api.copy.v1.copy_run_pb2 import LAG_UNIT_RECORDS, BadRecords, CopyProgress
from keelman.runtime.processes.ports import free_ports
from recorded.rest.access_steps import EXTENSION
from recorded.rest.record_access import exchange, jaas_file
from support.certificates import PASSWORD, Authority
from support.eventually import eventually
from support.worker.processes import LinkSide, WorkerProcess, workers

pytestmark = pytest.mark.component
T = TypeVar("T")

SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "lines"}
ALICE = ("alice", "wonder")


class Served:
    """The samples of a worker's /metrics."""

    def __init__(self, text: str) -> None:
        self.samples = [s for family in text_string_to_metric_families(text) for s in family.samples]

    def of(self, name: str, **labels: str) -> float | None:
        """The sample of this name with at least these labels."""
        values = [s.value for s in self.samples if s.name == name and labels.items() <= s.labels.items()]
        return values[0] if values else None


async def metrics(worker: WorkerProcess) -> Served:
    answer = await worker.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return Served(answer.text)


async def test_workers_speak_https_with_each_other(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    """A request to any worker reaches the leader by https, with the workers' own certificates and the user's password.

    Admin listeners speak it with keys of their own, and require no client certificate.
    """
    _, address = link
    authority = Authority()
    me = authority.issue("worker", "127.0.0.1", "localhost")
    admins = Authority()
    admin_keys = admins.issue("admin", "127.0.0.1").write_pkcs12(tmp_path / "admin.p12")
    secure = {
        "ssl.keystore.location": str(me.write_pkcs12(tmp_path / "key.p12")),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(authority.write_trust(tmp_path / "trust.p12")),
        "ssl.truststore.password": PASSWORD,
        "ssl.client.auth": "required",
    }
    extra = {
        **{f"listeners.https.{key}": value for key, value in secure.items()},
        "admin.listeners.https.ssl.keystore.location": str(admin_keys),
        "admin.listeners.https.ssl.keystore.password": PASSWORD,
        "rest.extension.classes": EXTENSION,
        "keelman.jaas.file": str(jaas_file(tmp_path)),
    }
    context = ssl.create_default_context(cadata=authority.pem)
    (tmp_path / "me.pem").write_text(me.key_pem + me.chain_pem)
    context.load_cert_chain(tmp_path / "me.pem")
    pair, admin_urls = [], []
    for number in range(2):
        port, admin_port = free_ports(2)
        listeners = {"listeners": f"https://127.0.0.1:{port}", "admin.listeners": f"https://127.0.0.1:{admin_port}"}
        pair.append(WorkerProcess(tmp_path / str(number), bootstrap, "secure", address, {**extra, **listeners}, port))
        admin_urls.append(f"https://127.0.0.1:{admin_port}")
    async with workers(*pair), httpx.AsyncClient(verify=context, trust_env=False, timeout=300) as client:
        urls = [f"https://{worker.id}" for worker in pair]
        for number, url in enumerate(urls):
            name = f"secure-{number}"
            assert (await client.post(f"{url}/connectors", json={"name": name, "config": SOURCE})).status_code == 401
            response = await client.post(f"{url}/connectors", json={"name": name, "config": SOURCE}, auth=ALICE)
            assert response.status_code == 201, response.text
        for url in urls:
            assert (await client.get(f"{url}/connectors", auth=ALICE)).json() == ["secure-0", "secure-1"]
            assert (await client.get(f"{url}/metrics")).status_code == 401
            assert (await client.put(f"{url}/connectors/secure-0/fence")).status_code == 400
        async with httpx.AsyncClient(verify=ssl.create_default_context(cadata=authority.pem), trust_env=False) as other:
            with pytest.raises(ssl.SSLError, match="certificate required"):
                await other.get(f"{urls[0]}/connectors", auth=ALICE)
        async with httpx.AsyncClient(verify=ssl.create_default_context(cadata=admins.pem), trust_env=False) as admin:
            for url, main in zip(admin_urls, urls, strict=True):
                put = await admin.put(f"{url}/admin/loggers/acme", json={"level": "DEBUG"}, auth=ALICE)
                assert (put.status_code, put.json()) == (200, ["acme"])
                assert (await admin.get(f"{url}/connectors", auth=ALICE)).status_code == 404
                assert (await client.get(f"{main}/admin/loggers", auth=ALICE)).status_code == 404
            with pytest.raises(httpx.TransportError):
                await client.get(f"{admin_urls[0]}/admin/loggers", auth=ALICE)
        answer = await exchange_or_nothing(pair[0].port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"this port speaks https" in answer
        log = pair[0].output + pair[1].output
        assert PASSWORD not in log
        assert "wonder" not in log


async def exchange_or_nothing(port: int, request: bytes) -> bytes:
    """The bytes that come back until the connection ends, in whatever way."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        async with asyncio.timeout(300):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_worker_tells_what_goes_on(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    """Metrics and log lines of connectors that copy, that fail and that cannot start."""
    side, address = link
    worker = WorkerProcess(tmp_path, bootstrap, "watched", address, {"keelman.restart.max.attempts": "0"})
    async with workers(worker):
        for name in ("copies", "fails"):
            assert (await worker.ask("POST", "/connectors", {"name": name, "config": SOURCE})).status_code == 201
            await worker.reaches(name, "RUNNING", "RUNNING")
        (copying,), (failing,) = side.of("copies"), side.of("fails")
        bad = BadRecords(failures=3, errors=1, retries=2)
        progress = CopyProgress(records=70, bytes=700, errors=1, lag=30, lag_unit=LAG_UNIT_RECORDS, bad_records=bad)
        side.copies(copying, progress=progress)
        side.fail(failing, retriable=False, trace="org.example.Broken: as told\n\tat somewhere")
        await worker.reaches("fails", "RUNNING", "FAILED")
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            gone = b'{"properties":{"connector.class":"com.example.Gone","name":"gone"}}'
            await producer.send_and_wait("watched-configs", gone, key=b"connector-gone")
        await worker.reaches("gone", "FAILED")

        async def seen() -> bool:
            written = "kafka_connect_source_task_metrics_source_record_write_total"
            return (await metrics(worker)).of(written, connector="copies") == 70

        await eventually(seen)
        served = await metrics(worker)
        copies, fails = {"connector": "copies", "task": "0"}, {"connector": "fails", "task": "0"}
        assert served.of("kafka_connect_source_task_metrics_source_record_poll_total", **copies) == 71
        assert served.of("kafka_connect_task_error_metrics_total_records_skipped", **copies) == 1
        assert served.of("kafka_connect_task_error_metrics_total_retries", **copies) == 2
        assert served.of("keelman_task_lag_records", **copies) == 30
        assert served.of("keelman_task_bytes_total", **copies) == 700
        assert served.of("keelman_task_state", state="RUNNING", **copies) == 1
        assert served.of("keelman_task_state", state="FAILED", **fails) == 1
        assert served.of("keelman_task_failures_total", **fails) == 1
        assert served.of("keelman_connector_state", connector="fails", state="RUNNING") == 1
        assert served.of("keelman_worker_tasks", state="FAILED") == 1
        assert served.of("kafka_connect_connect_worker_metrics_task_count") == 2
        assert served.of("kafka_connect_connect_worker_metrics_connector_failed_task_count", connector="fails") == 1
        assert served.of("kafka_connect_connector_metrics", connector="copies", connector_type="source") == 1
        assert (served.of("kafka_connect_connect_worker_rebalance_metrics_completed_rebalances_total") or 0) >= 1
        assert served.of("ErroredTaskCount", ConnectorName="fails") == 1
        assert served.of("RunningTaskCount", ConnectorName="copies") == 1
        assert served.of("SourceRecordWriteRate", ConnectorName="copies") is not None
        assert (served.of("RebalanceTimeMax") or 0) >= (served.of("RebalanceTimeAvg") or 0) > 0
        assert served.of("WorkerCount") == 1
        assert 0 < (served.of("CpuUtilization") or 0) <= 100
        assert 0 < (served.of("MemoryUtilization") or 0) < 100
        assert served.of("keelman_connector_state", connector="gone", state="FAILED") == 1
        assert served.of("keelman_worker_connectors", state="FAILED") == 1
        assert served.of("keelman_worker_joined") == served.of("keelman_worker_leader") == 1

        lines = (await worker.ask("GET", "/connectors/fails/logs")).json()
        assert any(line["event"] == "task_failed" and line["task"] == 0 for line in lines), lines
        assert all(line["connector"] == "fails" for line in lines)
        assert len((await worker.ask("GET", "/connectors/fails/logs?lines=1")).json()) == 1
        for lines in ("none", "0", "201", "9" * 400):
            assert (await worker.ask("GET", f"/connectors/copies/logs?lines={lines}")).status_code == 400
        assert (await worker.ask("GET", "/connectors/nobody/logs")).status_code == 404
        assert (await worker.ask("POST", "/metrics")).status_code == 405


async def in_time(work: Awaitable[T]) -> T:
    async with asyncio.timeout(300):
        return await work


async def test_hostile_requests_hold_nobody_up(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    """Each request gets its answer, other clients get theirs, and the worker's memory does not grow by the requests."""
    _, address = link
    worker = WorkerProcess(tmp_path, bootstrap, "hostile", address)
    async with workers(worker):
        await worker.ask("POST", "/connectors", {"name": "mine", "config": SOURCE})
        before = (await metrics(worker)).of("keelman_worker_memory_bytes") or 0
        idle = [await asyncio.open_connection("127.0.0.1", worker.port) for _ in range(200)]
        deep: Any = b"[" * 100_000 + b"]" * 100_000
        nested = b'{"name":"x","config":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001
        great = json.dumps({"name": "x", "config": {**SOURCE, "more": "x" * 3_000_000}}).encode()
        hostile: list[tuple[bytes, tuple[int, ...]]] = [
            (deep, (400, 500)),
            (nested, (400, 500)),
            (b"\xff\xfe{}", (400, 500)),
            (b'{"name":"\\u0000","config":{}}', (400, 500)),
            (b'{"name":"x","config":{"connector.class":"\\ud800"}}', (400, 500)),
            (great, (400, 500)),
            (bytes(100_000_000), (413,)),
        ]
        async with httpx.AsyncClient(base_url=f"http://{worker.id}", trust_env=False, timeout=300) as client:
            kind = {"content-type": "application/json"}

            async def others() -> float:
                slowest = 0.0
                while not done.is_set():
                    begun = time.monotonic()
                    assert (await client.get("/connectors/mine")).status_code == 200
                    slowest = max(slowest, time.monotonic() - begun)
                    await asyncio.sleep(0.05)
                return slowest

            done = asyncio.Event()
            meanwhile = asyncio.ensure_future(others())
            for body, statuses in hostile:
                answer = await in_time(client.post("/connectors", content=body, headers=kind))
                assert answer.status_code in statuses, (body[:50], answer.text[:300])
                assert set(answer.json()) == {"error_code", "message"}
            for path in (
                "/connectors/%00",
                "/connectors/%ff",
                "/connectors/" + "a" * 20_000,
                "/connectors/%zz",
                "/%2e%2e",
            ):
                refusal = await in_time(
                    exchange(worker.port, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                )
                assert 400 <= refusal["status"] < 500, (path[:30], refusal)
            done.set()
            assert await meanwhile < 30
        for _, writer in idle:
            writer.close()
        assert (await worker.ask("GET", "/connectors")).json() == ["mine"]
        after = (await metrics(worker)).of("keelman_worker_memory_bytes") or 0
        assert after - before < 150 << 20
