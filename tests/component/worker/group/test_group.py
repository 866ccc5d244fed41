"""Faults of groups: records over the broker's limit, Java members, labels that no worker has, a worker that freezes."""

import json
import os
import re
import signal
from pathlib import Path

import httpx
import pytest
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from keelman.kafka.clients import admin_client
from keelman.kafka.tables.reading import Row, read_topic
from keelman.runtime.supervise import Siblings
from support.eventually import eventually
from support.servers.connect_worker import ConnectProcess
from support.worker.processes import ENDED, LinkSide, WorkerProcess, workers

pytestmark = pytest.mark.component
SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "lines"}
PLACED = {**SOURCE, "keelman.placement.labels": "zone=b"}


async def limit_group_records(bootstrap: str, size: int) -> None:
    """Sets the limit of a group's record; a broker's default is 1,048,588 bytes."""
    async with admin_client({"bootstrap.servers": bootstrap}, client_id="test") as admin:
        resource = ConfigResource(
            ConfigResourceType.TOPIC,
            "__consumer_offsets",
            {"max.message.bytes": str(size), "cleanup.policy": "compact"},
        )
        answer = await admin.alter_configs([resource])
        assert [code for part in answer for code, *_ in part.resources] == [0]


async def test_a_group_record_over_the_brokers_limit_is_named_and_got_over(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path, name: str
) -> None:
    side, address = link
    worker = WorkerProcess(tmp_path, bootstrap, name, address)
    async with workers(worker):
        await worker.ask("POST", "/connectors", {"name": "first", "config": SOURCE})
        await worker.reaches("first", "RUNNING", "RUNNING")
        await limit_group_records(bootstrap, 900)
        try:
            for number in range(40):
                config = {"name": f"{'long' * 8}-{number}", "config": SOURCE, "initial_state": "PAUSED"}
                answer = await worker.ask("POST", "/connectors", config)
                if answer.status_code != 201:
                    break
            for text in (answer.text, worker.output):
                assert f"the brokers cannot store group {name}: its record" in text
                assert "max.message.bytes of topic __consumer_offsets" in text
            assert [run.state for run in side.of("first")], "running tasks continue"
            assert (await worker.ask("GET", "/connectors")).status_code == 200
        finally:
            await limit_group_records(bootstrap, 1_048_588)
        await worker.reaches(f"{'long' * 8}-0", "PAUSED", seconds=300)
        assert await worker.end() == 0


@pytest.mark.slow
async def test_java_workers_and_ours_refuse_each_other(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path, name: str
) -> None:
    _, address = link
    ours = WorkerProcess(tmp_path / "ours", bootstrap, name, address, {"session.timeout.ms": "240000"})
    java = ConnectProcess(tmp_path / "java", bootstrap, name)
    async with workers(ours):
        rounds = ours.output.count("joined")
        try:
            async with Siblings() as starting:
                starting.start(java.start())
                refused = "InconsistentGroupProtocolException"
                await eventually(lambda: refused in java.output, every=0.5, what="Java is refused")
            assert ours.output.count("joined") == rounds, "and our group did not even notice"
            assert (await ours.ask("GET", "/connectors")).status_code == 200
        finally:
            await java.end(signal.SIGKILL)
        # Its session would end in four minutes: its farewell process reports its death, and Java can join.
        await ours.end(signal.SIGKILL)
        await eventually(lambda: "farewell" in ours.output, what="its farewell is sent")
    has = f"group {name} has Java Connect workers (connect-127.0.0.1:{java.port}@127.0.0.1)"
    later = WorkerProcess(tmp_path / "later", bootstrap, name, address)

    async def says_why() -> bool:
        try:
            answer = await later.ask("GET", "/health")
        except httpx.HTTPError:
            return False
        return answer.status_code == 503 and f"{has}: waiting until they lapse" in answer.json()["message"]

    try:
        await java.start()
        await later.spawn()
        assert later.child is not None
        await eventually(says_why)
        assert await later.child.wait() == 1
        assert f"{has}: stop them first" in later.output, "its members are alive"
        assert (await java.ask("GET", "/connectors")).status_code == 200
        before = len(later.output)
        await java.end(signal.SIGKILL)
        async with workers(later):
            output = later.output[before:]
            assert f"{has}: waiting until they lapse" in output
            assert "stop them first" not in output
            assert (await later.ask("GET", "/health")).status_code == 200
            assert await later.end() == 0
    finally:
        await java.end(signal.SIGKILL)


async def test_a_new_connector_takes_no_round_of_the_group_that_gives_nothing(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path, name: str
) -> None:
    """A worker knows its leader's latest assignment, also if that is newer than at its own join."""
    first, second = (WorkerProcess(tmp_path / str(n), bootstrap, name, link[1]) for n in range(2))
    async with workers(first, second):
        before = rounds_without_work(first) & rounds_without_work(second)
        for number in range(4):
            connector = f"{name}-{number}"
            assert (await first.ask("POST", "/connectors", {"name": connector, "config": SOURCE})).status_code == 201
            await first.reaches(connector, "RUNNING", "RUNNING", seconds=300)
        for process in (first, second):  # the work of the last of them has ended
            assert await process.end() == 0
        idle = (rounds_without_work(first) & rounds_without_work(second)) - before
        assert len(idle) <= 1, idle


def rounds_without_work(process: WorkerProcess) -> set[str]:
    """The rounds in which this worker got and lost nothing."""
    return set(re.findall(r"joined .*generation=(\d+) .*new=0 revoked=0", process.output))


async def test_labels_say_where_a_connector_may_be(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path, name: str
) -> None:
    side, address = link
    worker_process = WorkerProcess(tmp_path / "one", bootstrap, name, address, {"keelman.labels": "zone=a,disk=ssd"})
    other = WorkerProcess(tmp_path / "other", bootstrap, name, address, {"keelman.labels": "zone=b"})
    async with workers(worker_process):
        await worker_process.ask("POST", "/connectors", {"name": f"{name}-placed", "config": PLACED})
        await worker_process.ask("POST", "/connectors", {"name": f"{name}-free", "config": SOURCE})
        await worker_process.reaches(f"{name}-placed", "UNASSIGNED", "UNASSIGNED")
        reason = (
            "No worker of the group may have it: keelman.placement.labels is zone=b, the workers' labels are "
            "disk=ssd,zone=a: set keelman.labels in a worker's properties"
        )

        async def said() -> bool:
            status = (await worker_process.ask("GET", f"/connectors/{name}-placed/status")).json()
            return bool(status["tasks"][0]["trace"].startswith(reason))

        await eventually(said, what="why it is nowhere")
        await worker_process.reaches(f"{name}-free", "RUNNING", "RUNNING")
        async with workers(other):
            await worker_process.reaches(f"{name}-placed", "RUNNING", "RUNNING")
            assert [run.worker for run in side.of(f"{name}-placed")] == [other.id]
            # With other labels it moves; it is not restarted if it may stay.
            request = {**PLACED, "keelman.placement.labels": "disk=ssd"}
            await worker_process.ask("PUT", f"/connectors/{name}-placed/config", request)
            await eventually(
                lambda: [run.worker for run in side.of(f"{name}-placed")] == [worker_process.id], what="it has moved"
            )
            (run,) = side.of(f"{name}-placed")
            rounds = worker_process.output.count("work_shared")
            request = {**PLACED, "keelman.placement.labels": "zone=a"}
            await worker_process.ask("PUT", f"/connectors/{name}-placed/config", request)
            await eventually(lambda: worker_process.output.count("work_shared") > rounds, what="it is shared out anew")
            assert side.of(f"{name}-placed") == [run]
            assert await other.end() == 0
        assert await worker_process.end() == 0


async def test_a_worker_frozen_past_its_session_writes_nothing_once_it_wakes(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path, name: str
) -> None:
    """It leads, and has a task whose copy run fails while it is frozen: on waking it has every reason to write."""
    side, address = link
    frozen = WorkerProcess(tmp_path / "frozen", bootstrap, name, address)
    other = WorkerProcess(tmp_path / "other", bootstrap, name, address)
    async with workers(frozen):
        await frozen.ask("POST", "/connectors", {"name": f"{name}-a", "config": SOURCE})
        await frozen.reaches(f"{name}-a", "RUNNING", "RUNNING")
        async with workers(other):
            for connector in "bcd":
                await other.ask("POST", "/connectors", {"name": f"{name}-{connector}", "config": SOURCE})
                await other.reaches(f"{name}-{connector}", "RUNNING", "RUNNING")
            mine = [run for run in side.runs.values() if run.worker == frozen.id and run.state != ENDED]
            assert mine
            assert frozen.child is not None
            os.kill(frozen.child.pid, signal.SIGSTOP)
            for run in mine:
                side.fail(run, retriable=True, reason="SLOT_LOST")
            for connector in "abcd":
                await eventually(lambda c=connector: runs_at(side, f"{name}-{c}", other), what="taken over")
            changed = await other.ask("PUT", f"/connectors/{name}-a/config", {**SOURCE, "batch.size": "7"})
            assert changed.status_code == 200
            await eventually(lambda: runs_at(side, f"{name}-a", other, size="7"))
            before = await all_records(bootstrap, name)
            os.kill(frozen.child.pid, signal.SIGCONT)
            await eventually(lambda: "group_lost" in frozen.output, what="it has noticed")
            await eventually(lambda: frozen.output.rsplit("group_lost", 1)[1].count("joined") >= 1)
            for connector in "abcd":
                await other.reaches(f"{name}-{connector}", "RUNNING", "RUNNING")
            after = await all_records(bootstrap, name)
            generation = max(json.loads(r.value)["generation"] for r in before["status"] if r.value)
            for kind, rows in after.items():
                new = rows[len(before[kind]) :]
                stale = [
                    row
                    for row in new
                    if kind != "status" or (row.value and json.loads(row.value)["generation"] < generation)
                ]
                assert not [r for r in stale if kind != "offsets"], f"{kind}: {stale}"
            assert await frozen.end() == 0
            assert await other.end() == 0


async def test_a_leader_that_was_frozen_does_nothing_late_for_who_has_gone(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path, name: str
) -> None:
    """A follower whose leader is replaced sends its request to the next one; clients have made other changes since."""
    _, address = link
    frozen = WorkerProcess(tmp_path / "frozen", bootstrap, name, address)
    other = WorkerProcess(tmp_path / "other", bootstrap, name, address)
    path = f"/connectors/{name}/config"
    async with workers(frozen, other):
        assert (await other.ask("PUT", path, SOURCE)).status_code == 201
        assert frozen.child is not None
        os.kill(frozen.child.pid, signal.SIGSTOP)
        try:
            url, late = f"http://{frozen.id}{path}?forward=true", {**SOURCE, "batch.size": "1"}
            async with httpx.AsyncClient(timeout=1, trust_env=False) as follower:
                with pytest.raises(httpx.ReadTimeout):
                    await follower.put(url, json=late)
            assert (await other.ask("PUT", path, {**SOURCE, "batch.size": "2"})).status_code == 200
        finally:
            os.kill(frozen.child.pid, signal.SIGCONT)
        await eventually(lambda: "joined" in frozen.output.partition("group_lost")[2], what="it is back")
        # It is after the late write.
        assert (await frozen.ask("PUT", f"/connectors/{name}-b/config", SOURCE)).status_code == 201
        assert (await other.ask("GET", path)).json()["batch.size"] == "2"
        written = [row.value for row in (await all_records(bootstrap, name))["configs"] if row.value]
        assert not [value for value in written if b'"batch.size":"1"' in value]
        for worker in (frozen, other):
            assert await worker.end() == 0


def runs_at(side: LinkSide, connector: str, worker: WorkerProcess, *, size: str = "") -> bool:
    """Whether the connector's task runs on that worker alone."""
    runs = side.of(connector)
    sizes = [run.ticket.task_config.get("batch.size", "") for run in runs]
    return [run.worker for run in runs] == [worker.id] and (not size or sizes == [size])


async def all_records(bootstrap: str, group: str) -> dict[str, list[Row]]:
    """The records of the three topics."""
    properties = {"bootstrap.servers": bootstrap}
    kinds = ("configs", "status", "offsets")
    return {
        kind: sorted(
            await read_topic(properties, f"{group}-{kind}", client_id="test", seconds=300),
            key=lambda row: (row.timestamp_ms, row.partition, row.offset),
        )
        for kind in kinds
    }
