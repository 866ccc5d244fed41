"""Both Couchbase connectors in a real worker, as users create them.

Their slot and their worker die, a node's history changes in the middle of a snapshot, and nodes come and go; of the
last history each change is copied once.
"""

import asyncio
import contextlib
import os
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.rpc.channels import channel
from keelman.runtime.processes.ports import free_ports
from support.couchbase.copies import numbers, official
from support.couchbase.server import CouchbaseServer, couchbase_server
from support.eventually import eventually
from support.kafka.topics import create_topic, messages
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = pytest.mark.component
PARTITIONS = "couchbase.partitions"
AS_PRINTED: dict[str, Any] = {
    "name": "couchbase-kafka-connector",
    "config": {
        "topic": "couchbase-kafka-connector", "connector.class":
        "org.apache.kafka.connect.couchbase.CouchbaseSourceConnector", "schema.name": "couchbaseschema",
        "couchbase.nodes": "localhost", "couchbase.bucket": "PMCONCURRENCY", "dcp.maximum.drainrate": "1000",
        "couchbase.dcpConnectionBufferSize": "0", "tasks.max": "1",
    },
}  # fmt: skip


def created(config: dict[str, str]) -> dict[str, Any]:
    """The body that creates a connector; its tasks are dealt by the worker."""
    return {"name": config["name"], "config": {k: v for k, v in config.items() if k not in (PARTITIONS, "name")}}


async def copied(bootstrap: str, topic: str, counter: Counter[int]) -> None:
    """Waits until each of these numbers was copied so often, and no other."""
    actual_numbers = await asyncio.to_thread(numbers, bootstrap, topic)
    deadline = asyncio.get_running_loop().time() + 180
    while actual_numbers.total() < counter.total() and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.2)
        actual_numbers = await asyncio.to_thread(numbers, bootstrap, topic)
    assert actual_numbers == counter


def put(server: CouchbaseServer, numbers_: range, **how: Any) -> None:
    """Documents with these numbers."""
    for n in numbers_:
        server.put(f"doc-{n}", {"n": n}, **how)


async def test_each_change_once_over_deaths_of_slot_and_worker(
    bootstrap: str, spark: SparkService, tmp_path: Path, name: str
) -> None:
    create_topic(bootstrap, name)
    worker = WorkerProcess(tmp_path / "worker", bootstrap, f"group-{name}", spark.address)
    with couchbase_server(vbuckets=8, nodes=2) as server:
        put(server, range(200))
        async with workers(worker):
            body = created({**official(name, server), "tasks.max": "2"})
            assert (await worker.ask("POST", "/connectors", body)).status_code == 201
            await copied(bootstrap, name, Counter(range(200)))
            for pid in spark.slot_pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await asyncio.to_thread(put, server, range(200, 300))
            await copied(bootstrap, name, Counter(range(300)))
            await worker.end(signal.SIGKILL)
            await asyncio.to_thread(put, server, range(300, 400))
            await worker.start()
            await copied(bootstrap, name, Counter(range(400)))
            for fault in (server.cut, lambda: server.kill(1), lambda: server.revive(1), server.malformed):
                await asyncio.to_thread(fault)
            await asyncio.to_thread(put, server, range(400, 500))
            await copied(bootstrap, name, Counter(range(500)))
            await worker.reaches(name, *["RUNNING"] * 3, seconds=300)
            rows = (await worker.ask("GET", f"/connectors/{name}/offsets")).json()["offsets"]
            seqnos = {int(row["partition"]["partition"]): row["offset"]["bySeqno"] for row in rows}
            assert seqnos == {number: history.high for number, history in server.vbuckets.items() if history.high}
            assert await worker.end() == 0


async def test_the_bodies_of_2016_as_they_were_printed(bootstrap: str, spark: SparkService, tmp_path: Path) -> None:
    """Except for the addresses of the nodes."""
    topic = "couchbase-kafka-connectorPMCONCURRENCY"
    create_topic(bootstrap, topic)
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "group-2016", spark.address)
    with couchbase_server(vbuckets=8, bucket="PMCONCURRENCY", user="PMCONCURRENCY", password="") as server:
        server.put("one", {"n": 1})
        body = {**AS_PRINTED, "config": {**AS_PRINTED["config"], "couchbase.nodes": server.seeds}}
        async with workers(worker):
            answer = await worker.ask("POST", "/connectors", body)
            assert answer.status_code == 201, answer.text
            await eventually(lambda: len(messages(bootstrap, topic)) == 1, what="the first document")
            config = {key: text for key, text in body["config"].items() if key != "couchbase.bucket"}
            config["couchbase.buckets"] = "PMCONCURRENCY"
            answer = await worker.ask("PUT", f"/connectors/{body['name']}/config", config)
            assert answer.status_code == 200, answer.text
            await asyncio.to_thread(server.put, "two", {"n": 2})
            await eventually(lambda: len(messages(bootstrap, topic)) == 2, what="the second document")
            assert await worker.end() == 0
    assert [message.value() for message in sorted(messages(bootstrap, topic), key=lambda value: str(value.key()))] == [
        b'Struct{bucket=PMCONCURRENCY,document=one,body={"n": 1}}',
        b'Struct{bucket=PMCONCURRENCY,document=two,body={"n": 2}}',
    ]


async def test_idle_tasks_leave_their_slots_and_come_back(
    bootstrap: str, spark: SparkService, tmp_path: Path, name: str
) -> None:
    """Changes while the tasks are parked are noticed.

    Documents, rollbacks, a vbucket that moved, and a node that was away.
    """
    create_topic(bootstrap, name)
    extra = {"keelman.park.after.ms": "300"}
    worker = WorkerProcess(tmp_path / "worker", bootstrap, f"group-{name}", spark.address, extra)
    with couchbase_server(vbuckets=8, nodes=2) as server:
        put(server, range(50))
        async with workers(worker), channel(spark.address) as opened:
            runs = CopyRunServiceStub(opened)

            async def parked() -> bool:
                listed = await runs.ListCopyRuns(ListCopyRunsRequest(worker_cluster=f"group-{name}"))
                return not listed.copy_runs

            body = created({**official(name, server), "tasks.max": "2"})
            assert (await worker.ask("POST", "/connectors", body)).status_code == 201
            for round_, fault in enumerate(
                (
                    lambda: None,
                    server.cut,
                    lambda: server.move(3, 0),
                    lambda: (server.kill(1), server.revive(1)),
                    lambda: server.fail_over(1, lost=1),
                ),
                start=1,
            ):
                counter = Counter(range(50 * round_))
                await copied(bootstrap, name, counter)
                await eventually(parked, what=f"both tasks are parked, {round_}")
                await worker.reaches(name, *["RUNNING"] * 3)
                await asyncio.to_thread(fault)
                await asyncio.to_thread(put, server, range(50 * round_, 50 * (round_ + 1)))
            await copied(bootstrap, name, Counter(range(300)))
            await eventually(parked, what="both tasks are parked, and a change has another one's number")
            last = server.vbuckets[1].high
            await asyncio.to_thread(lambda: (server.fail_over(1, lost=1), server.put("instead", {"n": 300}, vbucket=1)))
            assert server.vbuckets[1].high == last
            await copied(bootstrap, name, Counter(range(301)))
            assert worker.output.count("copy_run_failed") == 0
            assert await worker.end() == 0


async def test_a_rollback_is_counted(bootstrap: str, spark: SparkService, tmp_path: Path, name: str) -> None:
    create_topic(bootstrap, name)
    worker = WorkerProcess(tmp_path / "worker", bootstrap, f"group-{name}", spark.address)
    with couchbase_server(vbuckets=2) as server:
        put(server, range(10), vbucket=1)
        config = {**official(name, server), "couchbase.persistence.polling.interval": "0"}
        async with workers(worker):
            answer = await worker.ask("POST", "/connectors", created(config))
            assert answer.status_code == 201, answer.text
            await copied(bootstrap, name, Counter(range(10)))
            await asyncio.to_thread(server.fail_over, 1, lost=4)
            await asyncio.to_thread(put, server, range(20, 25), vbucket=1)
            await copied(bootstrap, name, Counter([*range(10), *range(20, 25)]))

            async def counted() -> bool:
                text = (await worker.ask("GET", "/metrics")).text
                labels = f'{{connector="{name}",task="0"}}'
                expected = {f"keelman_task_rollbacks_total{labels} 1", f"keelman_task_taken_back_total{labels} 4"}
                return expected <= set(text.splitlines())

            await eventually(counted, what="the rollback is counted")
            assert await worker.end() == 0


async def test_what_cannot_be_read_is_failed_at_once_with_a_line_that_names_it(
    bootstrap: str, spark: SparkService, tmp_path: Path, name: str
) -> None:
    (closed,) = free_ports(1)
    worker = WorkerProcess(tmp_path / "worker", bootstrap, f"group-{name}", spark.address)
    with couchbase_server(vbuckets=2) as server, couchbase_server(vbuckets=2) as no_data:
        no_data.nodes[0].serves = False
        wrong: dict[str, tuple[dict[str, str], str]] = {
            "bucket": ({"couchbase.bucket": "none"}, f"no bucket 'none' at {server.seeds}"),
            "password": ({"couchbase.password": "wrong"}, "the Couchbase cluster refuses user 'Administrator': "),
            "port": ({"couchbase.seed.nodes": f"127.0.0.1:{closed}"}, f"127.0.0.1:{closed}: Connection refused"),
            "node": ({"couchbase.seed.nodes": no_data.seeds}, f"{no_data.seeds} has no map of bucket 'travel'"),
            "tls": ({"couchbase.enable.tls": "true"}, f"{server.seeds}: no TLS there"),
            "scope": ({"couchbase.scope": "nowhere"}, "the bucket has no scope 'nowhere': it has _default"),
            "collection": ({"couchbase.collections": "_default.no"}, "the bucket has no collection '_default.no'"),
        }
        async with workers(worker):
            for what, (more, _) in wrong.items():
                body = created({**official(f"{name}-{what}", server), **more})
                assert (await worker.ask("POST", "/connectors", body)).status_code == 201

            async def lines(what: str) -> list[str]:
                """The reasons why it and its tasks are FAILED."""
                status = (await worker.ask("GET", f"/connectors/{name}-{what}/status")).json()
                return [task["trace"] for task in (status["connector"], *status["tasks"]) if task["state"] == "FAILED"]

            for what, (_, line) in wrong.items():
                matching = await eventually(partial(lines, what), what=f"{what} is FAILED")
                assert line in matching[0]
            assert await worker.end() == 0
