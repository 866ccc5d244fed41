"""Which workers may continue to copy when a group's coordinator, or a worker, is away or silent."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from keelman.kafka.clients import Client
from keelman.kafka.leaders.client import LeaderClient
from keelman.runtime.supervise import Siblings
from support.brokers.broker import BrokerProcess, proxied_broker
from support.eventually import eventually
from support.proxy import CLEAR, Weather
from support.spark.service import SparkService
from support.worker.groups import Flow, Workers, feeding
from support.worker.processes import LinkSide, WorkerProcess, workers

pytestmark = [pytest.mark.component, pytest.mark.fault]
SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "lines"}
LONG = {"session.timeout.ms": "240000", "heartbeat.interval.ms": "1000"}
ROUNDS = r"joined .*generation=(\d+)"


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[BrokerProcess]:
    """A broker to kill and to freeze."""
    broker_process = BrokerProcess(tmp_path / "broker")
    await broker_process.start()
    try:
        yield broker_process
    finally:
        await broker_process.end(signal.SIGKILL)


async def test_tasks_go_on_while_their_groups_coordinator_is_away(
    broker: BrokerProcess, link: tuple[LinkSide, str], tmp_path: Path
) -> None:
    """The broker is killed and restarted within the workers' session timeout: no task can have moved meanwhile."""
    side, address = link
    group = Workers([WorkerProcess(tmp_path / f"w{n}", broker.bootstrap, "g", address, LONG) for n in range(2)])
    first, second = group.processes
    async with group.running():
        for number in range(4):
            await first.ask("POST", "/connectors", {"name": f"c{number}", "config": SOURCE})
        for number in range(4):
            await first.reaches(f"c{number}", "RUNNING", "RUNNING", seconds=300)
        runs = [run for number in range(4) for run in side.of(f"c{number}")]
        assert {run.worker for run in runs} == {first.id, second.id}
        # The last connector may cause one more round, which moves nothing: the rounds are over once both workers serve.
        await eventually(lambda: are_settled(group), what="no round is under way")
        rounds = {process.id: re.findall(ROUNDS, process.output) for process in group.processes}

        await broker.end(signal.SIGKILL)
        for process in group.processes:
            await eventually(lambda p=process: "group_unanswered" in p.output, what="it is missed")
        renewed = dict(side.renewals)
        for process in group.processes:
            await eventually(lambda p=process: side.renewals[p.id] > renewed[p.id] + 2, what="leases last")
        for process in group.processes:
            await eventually(lambda p=process: is_old(p, 10), what="it reports the age of its answers")
            assert process.output.count("config_not_read") == 1, "one read waits for the unreachable workers"
            assert await process.states("c0") == ["RUNNING", "RUNNING"], "a copied answer is marked as a copy"
        await broker.start()
        for process in group.processes:
            await eventually(lambda p=process: "group_answers" in p.output, what="it is back")
            assert "group_lost" not in process.output
            await eventually(lambda p=process: is_new(p), what="its answers are new")
        assert [run for number in range(4) for run in side.of(f"c{number}")] == runs, "the same copy runs, not cut"
        assert rounds == {process.id: re.findall(ROUNDS, process.output) for process in group.processes}

        response = await second.ask("POST", "/connectors", {"name": "later", "config": SOURCE})
        assert response.status_code == 201, response.text
        assert (await first.ask("GET", "/connectors/later")).status_code == 200
        await second.reaches("later", "RUNNING", "RUNNING", seconds=300)
        for process in group.processes:
            assert await process.end() == 0


async def test_tasks_are_cut_before_the_session_of_their_worker_can_be_over(
    broker: BrokerProcess, link: tuple[LinkSide, str], tmp_path: Path
) -> None:
    """The coordinator stays away: as far as the worker knows, another worker has its tasks by then."""
    side, address = link
    worker = WorkerProcess(tmp_path / "w", broker.bootstrap, "g", address)
    async with workers(worker):
        await worker.ask("POST", "/connectors", {"name": "c", "config": SOURCE})
        await worker.reaches("c", "RUNNING", "RUNNING", seconds=300)
        (run,) = side.of("c")
        await broker.end(signal.SIGKILL)
        await eventually(lambda: run.cut, what="the copy run is cut")
        await eventually(lambda: "group_lost" in worker.output)
        await shows_ended(worker, "c")
        await broker.start()
        await worker.reaches("c", "RUNNING", "RUNNING", seconds=300)
        await eventually(lambda: measured(worker, "c", "RUNNING"), what="its metrics say so too")
        assert await worker.end() == 0


async def test_a_worker_that_alone_is_cut_off_shows_what_it_knows(link: tuple[LinkSide, str], tmp_path: Path) -> None:
    """The worker shows its own connector as ended; it shows other workers' connectors unchanged and marked as old."""
    _, address = link
    async with proxied_broker(tmp_path / "broker") as proxy:
        group = Workers([WorkerProcess(tmp_path / f"w{n}", proxy.address, "g", address) for n in range(2)])
        async with group.running():
            for connector in ("a", "b"):
                await group.processes[0].ask("POST", "/connectors", {"name": connector, "config": SOURCE})
                await group.processes[0].reaches(connector, "RUNNING", "RUNNING", seconds=300)
            alone, other = await group.owner("a"), await group.owner("b")
            assert alone is not other

            proxy.affects = lambda tunnel: alone.id in tunnel.client_id
            proxy.weather = Weather(frozen=True)
            await eventually(lambda: "group_lost" in alone.output, what="it has lost its group")
            await shows_ended(alone, "a")
            assert await is_running_on(alone, "b", other)
            await eventually(lambda: is_running_on(other, "a", other), what="the other has its task")
            assert (await other.ask("GET", "/connectors/a/status")).headers.get("age") is None
            await shows_ended(alone, "a")

            proxy.weather = CLEAR
            await eventually(lambda: is_new(alone), what="it is back")
            for connector in ("a", "b"):
                await eventually(lambda c=connector: all_agree(group, c), what=f"all name the owner of {connector}")
            for process in group.processes:
                assert await process.end() == 0


async def are_settled(group: Workers) -> bool:
    """Whether all workers are in the same round of the group and none requests another.

    A worker that requests another round does not yet serve requests that need its thread of control.
    """
    before = {re.findall(ROUNDS, process.output)[-1] for process in group.processes}
    for process in group.processes:
        assert (await process.ask("POST", "/connectors/nowhere/tasks/0/restart")).status_code == 404
    return {re.findall(ROUNDS, process.output)[-1] for process in group.processes} == before and len(before) == 1


async def is_running_on(worker_process: WorkerProcess, connector: str, worker: WorkerProcess) -> bool:
    """Whether a worker reports that another worker, or itself, runs the connector's only task."""
    (task,) = (await worker_process.ask("GET", f"/connectors/{connector}/status")).json()["tasks"]
    return (task["state"], task["worker_id"], task.get("trace")) == ("RUNNING", worker.id, None)


async def all_agree(group: Workers, connector: str) -> bool:
    """Whether all workers report the same owner of the connector and its only task, and both as running."""
    document = [(await process.ask("GET", f"/connectors/{connector}/status")).json() for process in group.processes]
    owners = {task["worker_id"] for status in document for task in status["tasks"]}
    states = [[shown["state"] for shown in (status["connector"], *status["tasks"])] for status in document]
    assert len(owners) == 1, document
    return all(state == ["RUNNING"] * 2 for state in states)


async def shows_ended(worker: WorkerProcess, connector: str) -> None:
    """Returns once every endpoint of the worker shows its part of a connector, and the task, as ended."""
    await eventually(lambda: is_old(worker, 0), what="it reports the age of its answers")
    answer = await worker.ask("GET", f"/connectors/{connector}/status")
    assert "as known at 20" in answer.headers["warning"]
    status = answer.json()
    assert status["tasks"][0]["worker_id"] == worker.id
    reason = r"lost its place in the group at 20.*: the group's coordinator does not answer"
    for shown in (status["connector"], *status["tasks"]):
        if shown["worker_id"] == worker.id:
            assert shown["state"] == "UNASSIGNED"
            assert re.search(reason, shown["trace"])
    assert (await worker.ask("GET", f"/connectors/{connector}/tasks/0/status")).json() == status["tasks"][0]
    listed = (await worker.ask("GET", "/connectors?expand=status")).json()
    assert listed[connector]["status"] == status
    await eventually(lambda: measured(worker, connector, "UNASSIGNED"), what="its metrics say so too")


async def measured(worker: WorkerProcess, connector: str, state: str) -> bool:
    """Whether the worker's metrics show its part of a connector, and the task, in this state."""
    text = (await worker.ask("GET", "/metrics")).text
    matches = re.findall(rf'^keelman_(connector|task)_state{{connector="{connector}".*state="(\w+)"}} 1', text, re.M)
    return ("task", state) in matches and {state_shown for _, state_shown in matches} == {state}


async def is_old(worker: WorkerProcess, seconds: int) -> bool:
    """Whether the worker declares its answers to be at least this old."""
    age = (await worker.ask("GET", "/connectors?expand=status")).headers.get("age")
    return age is not None and int(age) >= seconds


async def is_new(worker: WorkerProcess) -> bool:
    """Whether the worker declares no age of its answers."""
    return not {"age", "warning"} & (await worker.ask("GET", "/connectors")).headers.keys()


async def test_a_frozen_worker_doubles_nothing_once_it_wakes(
    bootstrap: str, spark: SparkService, tmp_path: Path, name: str
) -> None:
    group = Workers.of(tmp_path, bootstrap, name, spark.address, 2)
    flow = Flow(tmp_path, name)
    async with group.running():
        await group.begin(bootstrap, flow)
        async with feeding(flow):
            await flow.passes()
            frozen = await group.owner(f"{name}-in")
            (other,) = [process for process in group.processes if process is not frozen]
            assert frozen.child is not None
            os.kill(frozen.child.pid, signal.SIGSTOP)
            try:
                await eventually(lambda: ended_lease(spark, frozen), what="its lease lapses")

                async def taken_over() -> bool:
                    return await other.states(f"{name}-in") == ["RUNNING"] * 2 and (
                        f'"worker_id":"{other.id}"' in (await other.ask("GET", f"/connectors/{name}-in/status")).text
                    )

                await eventually(taken_over, every=0.2, what="the other has its source")
                await flow.passes()
            finally:
                os.kill(frozen.child.pid, signal.SIGCONT)
            await eventually(lambda: "group_lost" in frozen.output, what="it has noticed")
            await eventually(lambda: "joined" in frozen.output.rsplit("group_lost", 1)[1], what="it is back")
            await flow.passes()
        assert flow.judged().clean, flow.judged()
        for process in group.processes:
            assert await process.end() == 0


def ended_lease(spark: SparkService, worker: WorkerProcess) -> bool:
    """Whether the Spark service has ended this worker's runs, by its log."""
    return any("lease_lapsed" in line and worker.id in line for line in spark.log.read_text().splitlines())


async def test_a_client_outlives_a_broker_that_is_silent_for_a_whole_request(broker: BrokerProcess) -> None:
    """When its requests time out, another that timed out in the same moment has closed their connection."""
    processes = [psutil.Process(broker.pid), *psutil.Process(broker.pid).children(recursive=True)]
    client = LeaderClient({"bootstrap.servers": broker.bootstrap}, client_id="test", request_timeout_ms=10_000)
    try:
        await client.bootstrap()
        assert await told(client) == ""
        for process in processes:
            process.suspend()
        try:
            async with Siblings() as siblings:
                request, update = siblings.start(told(client)), siblings.start(updated(client))
                await eventually(lambda: under_way(client) == 2, what="both are under way")
                given_up = list(client._conns.values())
                client._conns.clear()
                assert await request == "RequestTimedOutError()"
                assert not await update
        finally:
            for process in processes:
                process.resume()
        for connection in given_up:
            connection.close()
        assert await updated(client), "the brokers are followed still"
        assert await told(client) == ""
    finally:
        await client.close()


def under_way(client: Client) -> int:
    """The number of requests that wait for their answers."""
    return sum(len(connection._requests) for connection in client._conns.values())


async def told(client: Client) -> str:
    """The reason why a broker does not answer; empty when it does."""
    try:
        await client.send(1, MetadataRequest([], allow_auto_topic_creation=False))
    except KafkaError as error:
        return repr(error)
    return ""


async def updated(client: Client) -> bool:
    """Whether a broker reports all brokers."""
    async with asyncio.timeout(300):
        return bool(await client.force_metadata_update())
