"""A worker of a group whose Spark service does not start, stops, or comes and goes.

Only workers that can copy get tasks.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from keelman.runtime.processes.ports import free_ports
from support.eventually import eventually
from support.kafka.topics import messages
from support.proxy import CLEAR, Proxy, Weather
from support.spark.service import SparkService
from support.worker.processes import LinkSide, WorkerProcess, link_side, workers

pytestmark = pytest.mark.component
NOBODY = "127.0.0.1:1"
AWAY_SECONDS = 2.0
SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "spark-away"}


def member(folder: Path, bootstrap: str, group: str, spark: str, **extra: str) -> WorkerProcess:
    """A worker that is patient for AWAY_SECONDS, with short heartbeats."""
    more = {"heartbeat.interval.ms": "500", "scheduled.rebalance.max.delay.ms": "0"}
    flags = ("--spark-away-seconds", str(AWAY_SECONDS))
    return WorkerProcess(folder, bootstrap, group, spark, {**more, **extra}, flags=flags)


async def begin(worker: WorkerProcess, count: int) -> None:
    """Connectors of one task each."""
    for number in range(count):
        response = await worker.ask("POST", "/connectors", {"name": f"c{number}", "config": SOURCE})
        assert response.status_code == 201, response.text


async def tasks(worker: WorkerProcess) -> list[tuple[str, str, str]]:
    """State, owner and trace of all tasks in this worker's answer."""
    document = (await worker.ask("GET", "/connectors?expand=status")).json()
    actual_tasks = [task for entry in document.values() for task in entry["status"]["tasks"]]
    return [(task["state"], task["worker_id"], task.get("trace", "")) for task in actual_tasks]


async def all_run(worker: WorkerProcess, count: int, *owners: WorkerProcess) -> None:
    """Waits until so many tasks run, on each of these workers and on no other."""

    async def there() -> bool:
        now = await tasks(worker)
        return len(now) == count and {(s, who) for s, who, _ in now} == {("RUNNING", owner.id) for owner in owners}

    try:
        await eventually(there, what=f"{count} tasks run on {[owner.id for owner in owners]}")
    except AssertionError as error:
        raise AssertionError(f"{error}: {await tasks(worker)}\n{worker.output[-3000:]}") from error


async def unhealthy(worker: WorkerProcess, *words: str) -> str:
    """Waits until its health is 503 for these words; the message."""

    async def told() -> str:
        answer = await worker.ask("GET", "/health")
        message = str(answer.json()["message"])
        return message if answer.status_code == 503 and all(word in message for word in words) else ""

    return await eventually(told, what=f"{worker.id} is unhealthy: {words}")


async def healthy(worker: WorkerProcess) -> None:
    """Waits until its health is 200."""

    async def told() -> bool:
        return (await worker.ask("GET", "/health")).status_code == 200

    await eventually(told, what=f"{worker.id} is healthy")


def rounds(worker: WorkerProcess) -> int:
    """The number of rounds of its group in which it took part."""
    return len(re.findall(r"\bjoined ", worker.output))


async def test_who_has_no_spark_service_gets_no_tasks(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path
) -> None:
    single_member = member(tmp_path / "one", bootstrap, "away-never", link[1])
    two = member(tmp_path / "two", bootstrap, "away-never", NOBODY)
    async with workers(single_member):
        await begin(single_member, 10)
        await all_run(single_member, 10, single_member)
        async with workers(two):
            await unhealthy(two, "no Spark service answers this worker yet", NOBODY)
            response = await two.ask("POST", "/connectors", {"name": "late", "config": SOURCE})
            assert response.status_code == 201, "it answers requests all the same"
            await all_run(two, 11, single_member)
            assert (await single_member.ask("GET", "/health")).status_code == 200
            assert "keelman_worker_takes_tasks 0" in (await two.ask("GET", "/metrics")).text
            assert "keelman_worker_takes_tasks 1" in (await single_member.ask("GET", "/metrics")).text
            assert await two.end() == 0


async def test_a_short_absence_moves_nothing_and_a_long_one_moves_the_tasks(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path
) -> None:
    side, address = link
    async with Proxy("127.0.0.1", int(address.rpartition(":")[2])) as way:
        single_member = member(tmp_path / "one", bootstrap, "away-cut", way.address)
        two = member(tmp_path / "two", bootstrap, "away-cut", address)
        async with workers(single_member, two):
            await begin(single_member, 4)
            await all_run(two, 4, single_member, two)
            before = rounds(two)

            # Away for less than its patience: the same tasks keep running, and no round is called.
            way.refusing = True
            way.cut()
            await eventually(lambda: "spark_link_lost" in single_member.output, what="the link is lost")
            way.refusing = False
            await eventually(lambda: single_member.output.count("spark_link_up") == 2, what="the link is back")
            await all_run(two, 4, single_member, two)
            assert rounds(two) == before

            # Away for longer: the other worker has all of them, and this one, which leads, answers and reports the
            # reason.
            way.weather = Weather(frozen=True)
            await all_run(two, 4, two)
            assert "answers requests and copies nothing: no Spark service answers" in await unhealthy(single_member)
            assert (await single_member.ask("POST", "/connectors", {"name": "c4", "config": SOURCE})).status_code == 201
            await all_run(single_member, 5, two)

            # It is back: the tasks are balanced again.
            way.weather = CLEAR
            await all_run(two, 5, single_member, two)
            await healthy(single_member)
            await eventually(lambda: [len(side.of(f"c{n}")) for n in range(5)] == [1] * 5, what="each copies once")


async def test_a_spark_service_without_spark_is_as_good_as_away(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path
) -> None:
    async with link_side() as (bare, address):
        single_member = member(tmp_path / "one", bootstrap, "away-bare", address)
        two = member(tmp_path / "two", bootstrap, "away-bare", link[1])
        async with workers(single_member, two):
            await begin(single_member, 2)
            await all_run(two, 2, single_member, two)
            bare.problem = "its master is gone"
            await unhealthy(single_member, "its Spark service has no Spark: its master is gone")
            await all_run(two, 2, two)
            bare.problem = ""
            await all_run(two, 2, single_member, two)
            await healthy(single_member)


async def test_where_no_worker_has_a_spark_service_the_status_says_so(bootstrap: str, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    single_member = member(tmp_path / "one", bootstrap, "away-all", address)
    two = member(tmp_path / "two", bootstrap, "away-all", address)
    async with workers(single_member, two):
        await begin(single_member, 3)

        async def unassigned() -> bool:
            now = await tasks(two)
            return bool(now) and all(
                state == "UNASSIGNED" and reason.startswith("No worker of the group can run it now: ")
                for state, _, reason in now
            )

        await eventually(unassigned, what="the status tells that no worker can run them")
        now = await tasks(two)
        assert all(single_member.id in reason and two.id in reason for _, _, reason in now), now
        assert (await single_member.states("c0"))[0] == "RUNNING", "a connector needs no Spark service"
        for name in ("c0", "c1"):
            assert (await two.ask("PUT", f"/connectors/{name}/pause")).status_code == 202
        assert (await two.ask("DELETE", "/connectors/c2")).status_code == 204
        for name in ("c0", "c1"):
            assert (await single_member.ask("PUT", f"/connectors/{name}/resume")).status_code == 202
        async with link_side(port) as (_, _):
            await all_run(single_member, 2, single_member, two)
            await healthy(single_member)
            await healthy(two)
        # The service is lost again: neither worker can run anything.
        await eventually(unassigned, what="they are given back")
        await unhealthy(single_member)
        await unhealthy(two)


async def has_all(bootstrap: str, topics: list[str], line: str) -> bool:
    """Whether each of these topics has this line, once."""
    actual_messages = [await asyncio.to_thread(messages, bootstrap, topic) for topic in topics]
    return all([row.value() for row in rows] == [line.encode()] for rows in actual_messages)


async def test_a_line_into_each_file_comes_into_each_topic(bootstrap: str, spark: SparkService, tmp_path: Path) -> None:
    """Ten file sources and two workers, one of which has no Spark service."""
    topics = [f"spark-away-{n}" for n in range(10)]
    single_member = member(tmp_path / "one", bootstrap, "away-files", spark.address)
    two = member(tmp_path / "two", bootstrap, "away-files", NOBODY)
    async with workers(single_member, two):
        for topic in topics:
            (tmp_path / topic).touch()
            config = {**SOURCE, "file": str(tmp_path / topic), "topic": topic}
            response = await two.ask("POST", "/connectors", {"name": topic, "config": config})
            assert response.status_code == 201, response.text
        await all_run(two, 10, single_member)
        for topic in topics:
            (tmp_path / topic).write_text("a line\n")
        await eventually(lambda: has_all(bootstrap, topics, "a line"), what="all topics have the line")


async def test_a_standalone_worker_waits_for_its_spark_service_and_goes_on_by_itself(
    bootstrap: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    extra = {"offset.storage.file.filename": str(tmp_path / "offsets")}
    worker = member(tmp_path / "one", bootstrap, "away-alone", f"127.0.0.1:{port}", **extra)
    worker.flags += ("--standalone", "true")
    async with workers(worker):
        await unhealthy(worker, "no Spark service answers this worker yet")
        await begin(worker, 1)
        waits = ["RUNNING", "UNASSIGNED"]
        await eventually(lambda: has_states(worker, waits), what="its task waits")
        async with link_side(port):
            await worker.reaches("c0", "RUNNING", "RUNNING", seconds=300)
        await eventually(lambda: has_states(worker, waits), what="its task waits again")
        async with link_side(port):
            await worker.reaches("c0", "RUNNING", "RUNNING", seconds=300)
            await healthy(worker)
        assert await worker.end() == 0


async def has_states(worker: WorkerProcess, states: list[str]) -> bool:
    """Whether connector c0 and its tasks are in these states."""
    return await worker.states("c0") == states
