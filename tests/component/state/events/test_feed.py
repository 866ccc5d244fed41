"""Events and reports through a real broker, which is the very broker that the state service placed; and kill -9."""

import asyncio
import signal
import sqlite3
from datetime import UTC, datetime, timedelta

import psutil
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from keelman.api.connect.v1 import worker_cluster_service_pb2, worker_pb2, worker_service_pb2
from keelman.api.connect.v1.broker_cluster_pb2 import ClusterState
from keelman.api.copy.v1 import copy_run_pb2, copy_run_service_pb2
from keelman.api.event.v1 import event_pb2, report_pb2
from keelman.api.node.v1 import workload_pb2
from keelman.kafka.feed import COPY_RUN_REPORTS, WORKER_REPORTS, ReportPublisher, consume, event_topic
from keelman.model.errors import NotFound
from keelman.rpc.channels import channel
from keelman.rpc.times import to_timestamp
from keelman.state.nouns.registry import NOUNS
from support.brokers.broker import BrokerProcess, started_broker
from support.eventually import eventually
from support.state.service import Agent, Clients, StateProcess, free_range, state_in_loop

pytestmark = pytest.mark.component
STATE = copy_run_pb2.CopyRunState
START = datetime.now(UTC) - timedelta(minutes=5)


@pytest.fixture(scope="module")
async def broker(tmp_path_factory):
    async with started_broker(tmp_path_factory.mktemp("broker")) as started:
        yield started


class Seen:
    """All events, as a consumer sees them."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.events: list[event_pb2.Event] = []
        self.tombstones: list[str] = []

    async def __aenter__(self) -> "Seen":
        self.task = asyncio.ensure_future(self._run())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _run(self) -> None:
        async for fact in consume(self.bootstrap, [event_topic(n) for n in NOUNS]):
            if fact.value is None:
                self.tombstones.append(fact.key)
                continue
            event = event_pb2.Event.FromString(fact.value)
            assert fact.key == event.name
            self.events.append(event)

    @property
    def revisions(self) -> list[int]:
        return sorted({e.revision for e in self.events})


def copy_run(uid: str, state: str, *, age: float = 60, **more) -> copy_run_pb2.CopyRun:
    fields = {"uid": uid, "worker_cluster": "demo", "connector": "lines", "task": 0, "worker_id": "127.0.0.1:8083"}
    fields["state"] = STATE.Value(f"COPY_RUN_STATE_{state}")
    fields["create_time"] = to_timestamp(datetime.now(UTC) - timedelta(seconds=age))
    return copy_run_pb2.CopyRun(**fields | more)


def report(**subject) -> bytes:
    now = Timestamp()
    now.GetCurrentTime()
    return report_pb2.Report(time=now, reporter="test", **subject).SerializeToString()


async def runs_of(clients: Clients, *, ended: bool = True) -> dict[str, copy_run_pb2.CopyRun]:
    request = copy_run_service_pb2.ListCopyRunsRequest(include_ended=ended, page_size=1000)
    return {r.uid: r for r in (await clients.runs.ListCopyRuns(request)).copy_runs}


def running(generation: int, start: datetime = START) -> workload_pb2.WorkloadStatus:
    return workload_pb2.WorkloadStatus(
        state="WORKLOAD_STATE_RUNNING", generation=generation, pid=1, start_time=to_timestamp(start)
    )


async def test_events_wait_for_the_broker_that_they_start_and_come_in_order(tmp_path) -> None:
    ports = {"broker_ports": free_range(2)}
    async with state_in_loop(tmp_path, **ports) as (clients, _), Agent(clients, "n1") as agent:
        await clients.create_managed("default", "n1")
        placed = (await eventually(lambda: agent.workloads.get("broker/default/0"))).spec.broker
        await clients.create_workers("demo", count=1)
        real = BrokerProcess(tmp_path / "broker", placed.port, placed.controller_port)
        await real.start()
        try:
            async with Seen(real.bootstrap) as seen:
                await eventually(lambda: seen.revisions == list(range(1, latest(tmp_path) + 1)))
                await clients.start_workers("demo")
                await eventually(lambda: any(e.name == "worker/demo/0" for e in seen.events))
                await real.end(signal.SIGKILL)
                await clients.stop_workers("demo")
                await eventually(lambda: is_in(clients, "STOPPED"))
                await real.start()
                await eventually(lambda: seen.revisions == list(range(1, latest(tmp_path) + 1)), what="all events")
                written = seen.revisions[-1]
                newest: dict[str, int] = {}
                for event in seen.events:
                    noun = event.WhichOneof("resource")
                    # Its reader starts again when the broker comes back, so a revision may come again, but never a gap.
                    if event.revision > newest.get(noun, 0):
                        newest[noun] = event.revision
                assert max(newest.values()) == written
                last = max((e for e in seen.events if e.HasField("worker_cluster")), key=lambda e: e.revision)
                assert last.worker_cluster.status.state == (await clients.worker_cluster("demo")).status.state
                await clients.delete_workers("demo")
                await eventually(lambda: {"demo", "worker/demo/0"} <= {*seen.tombstones}, what="tombstones come")
        finally:
            await real.end()


async def is_in(clients: Clients, expected: str) -> bool:
    return ClusterState.Name((await clients.worker_cluster("demo")).status.state) == f"CLUSTER_STATE_{expected}"


def latest(home) -> int:
    with sqlite3.connect(home / "state" / "state.db") as database:
        (value,) = database.execute("SELECT value FROM counter WHERE name = 'revision'").fetchone()
    database.close()
    return value


async def test_copy_runs_tell_the_truth_and_come_back_after_a_restart(tmp_path, broker) -> None:
    async with state_in_loop(tmp_path) as (clients, _), ReportPublisher(broker.bootstrap, "test") as publisher:
        await clients.create_external("default", broker.bootstrap)
        await clients.create_workers("demo", count=1)
        async with Agent(clients, "n1") as agent:
            agent.special = {"worker/demo/0": running(1), "spark/n1": running(1)}
            await clients.start_workers("demo")
            await eventually(lambda: is_in(clients, "RUNNING"))

            def publish(run: copy_run_pb2.CopyRun) -> None:
                publisher.publish(COPY_RUN_REPORTS, run.uid, report(name=run.uid, copy_run=run))

            for number in range(13):
                publish(copy_run(f"old-{number:02}", "ENDED", age=1000 - number))
            publish(copy_run("before", "RUNNING", age=90))
            publish(copy_run("now", "RUNNING", age=60, progress={"records": 7, "records_per_second": 9}))
            publish(copy_run("elsewhere", "RUNNING", task=1, worker_id="127.0.0.1:9"))
            answer = await eventually(lambda: has_runs(clients, 13, "elsewhere"))
            assert sorted(u for u in answer if u.startswith("old")) == [f"old-{n:02}" for n in range(3, 13)]
            assert answer["now"].state == STATE.COPY_RUN_STATE_RUNNING
            assert answer["now"].progress.records == 7
            assert (answer["before"].state, answer["before"].reason) == (STATE.COPY_RUN_STATE_FAILED, "LOST")
            assert answer["before"].message == "copy run now of the same task fenced it"
            assert answer["elsewhere"].message == "no worker of its worker cluster has the address 127.0.0.1:9 any more"
            assert sorted(await runs_of(clients, ended=False)) == ["now"]

            membership = worker_pb2.WorkerMembership(
                joined=True, leader=True, group_generation=3, connectors=1, tasks=2
            )
            failed = {"state": "CONNECTOR_PROBLEM_STATE_FAILED", "reason": "no such file"}
            membership.problems.add(connector="files", task=1, **failed)
            membership.problem_connectors = 1
            worker = report_pb2.WorkerReport(worker_cluster="demo", worker_id="127.0.0.1:8083", membership=membership)
            publisher.publish(WORKER_REPORTS, worker.worker_id, report(name=worker.worker_id, worker=worker))
            await eventually(lambda: is_member(clients, 2))
            verdict = "1 connector has problems: files task 1 FAILED (no such file)"
            requested_request = worker_cluster_service_pb2.GetWorkerClusterRequest(name="demo")
            assert (await clients.clusters.GetWorkerCluster(requested_request)).worker_cluster.status.verdict == verdict
            listed = await clients.clusters.ListWorkerClusters(worker_cluster_service_pb2.ListWorkerClustersRequest())
            assert [c.status.verdict for c in listed.worker_clusters] == [verdict]

            request = copy_run_service_pb2.WatchCopyRunsRequest(worker_cluster="demo")
            watch = clients.runs.WatchCopyRuns(request)
            first = await watch.read()
            assert first.snapshot
            assert len(first.copy_runs) == 13
            publish(copy_run("now", "RUNNING", age=60, progress={"records": 8}))
            second = await watch.read()
            assert not second.snapshot
            assert [(r.uid, r.progress.records) for r in second.copy_runs] == [("now", 8)]
            agent.special["spark/n1"] = workload_pb2.WorkloadStatus(state="WORKLOAD_STATE_FAILED", generation=1)
            agent.report()
            third = await watch.read()
            assert [(r.uid, r.reason, r.message) for r in third.copy_runs] == [("now", "LOST", "spark/n1 is FAILED")]
            watch.cancel()
            agent.special["spark/n1"] = running(1, datetime.now(UTC))
            agent.report()
            await eventually(lambda: has_message(clients, "spark/n1 was started again after this copy run began"))
            publish(copy_run("next", "RUNNING", age=-1))
            await eventually(lambda: has_runs(clients, 14, "next"))
        with pytest.raises(NotFound, match="no copy run has the uid 'none'"):
            await clients.runs.GetCopyRun(copy_run_service_pb2.GetCopyRunRequest(uid="none"))
    async with state_in_loop(tmp_path) as (clients, _):
        back = await eventually(lambda: has_runs(clients, 14, "next"))
        assert back["next"].state == STATE.COPY_RUN_STATE_RUNNING
        assert back["now"].state == STATE.COPY_RUN_STATE_FAILED
        assert "old-02" not in back


async def has_runs(clients: Clients, number: int, uid: str) -> dict[str, copy_run_pb2.CopyRun] | None:
    """The runs, if there are this many and the run that was reported last is among them."""
    runs = await runs_of(clients)
    return runs if len(runs) == number and uid in runs else None


async def has_message(clients: Clients, message: str) -> bool:
    return (await runs_of(clients))["now"].message == message


async def is_member(clients: Clients, tasks: int) -> bool:
    answer = await clients.workers.GetWorker(worker_service_pb2.GetWorkerRequest(name="demo/0"))
    return answer.worker.membership.tasks == tasks and answer.worker.membership.HasField("report_time")


async def test_reports_keep_the_newest_while_the_broker_is_away(broker) -> None:
    async with ReportPublisher(broker.bootstrap, "test") as publisher, ReportPublisher("", "nobody") as nobody:
        publisher.publish(COPY_RUN_REPORTS, "a", b"first")
        facts = consume(broker.bootstrap, [COPY_RUN_REPORTS])
        async with asyncio.timeout(300):
            while (await anext(facts)).value != b"first":
                pass
            await broker.end(signal.SIGKILL)
            for value in range(100):
                publisher.publish(COPY_RUN_REPORTS, "a", b"%d" % value)
                nobody.publish(COPY_RUN_REPORTS, "a", b"nobody")
            await broker.start()
            values = []
            while b"99" not in values:
                fact = await anext(facts)
                values += [fact.value] if fact.key == "a" else []
        await facts.aclose()
    assert b"nobody" not in values
    # The first may have been in transit; the newest is the last one written, and few are in between.
    assert len(set(values) - {b"first"}) <= 3


async def test_kill_9_in_the_middle_of_writes_leaves_no_gap(tmp_path, broker) -> None:
    state = StateProcess(tmp_path)
    await state.start()
    try:
        for turn in range(3):
            async with channel(f"127.0.0.1:{state.port}") as connection:
                clients = Clients(connection)

                async def write(turn: int = turn, clients: Clients = clients) -> None:
                    for number in range(1000):
                        await clients.create_external(f"ext-{turn}-{number}", broker.bootstrap)

                writes = asyncio.ensure_future(write())
                written = tmp_path / "state" / "state.db"
                await eventually(lambda turn=turn, written=written: latest(tmp_path) > (turn + 1) * 15)
                assert await state.end(signal.SIGKILL) == -signal.SIGKILL
                await asyncio.gather(writes, return_exceptions=True)
                await state.start()
        async with channel(f"127.0.0.1:{state.port}") as connection:
            await Clients(connection).create_external("default", broker.bootstrap)
            await eventually(lambda: published(tmp_path) == latest(tmp_path), what="all is relayed")
    finally:
        memory = psutil.Process(state.child.pid).memory_info().rss
        assert await state.end() == 0, state.output
    assert memory < 200 * 1024 * 1024
    with sqlite3.connect(tmp_path / "state" / "state.db") as database:
        revisions = [r for (r,) in database.execute("SELECT revision FROM outbox ORDER BY revision")]
        (counter,) = database.execute("SELECT value FROM counter WHERE name = 'revision'").fetchone()
        names = {n for (n,) in database.execute("SELECT name FROM resource WHERE noun = 'broker_cluster'")}
        told = {n for (n,) in database.execute("SELECT name FROM outbox WHERE noun = 'broker_cluster'")}
    database.close()
    assert revisions == list(range(1, counter + 1))
    assert names == told
    # Its probes may have written something since everything was relayed.
    relayed = [r for r in revisions if r <= published(tmp_path)]
    async with Seen(broker.bootstrap) as seen:
        await eventually(lambda: set(relayed) <= set(seen.revisions))


def published(home) -> int:
    with sqlite3.connect(home / "state" / "state.db") as database:
        (value,) = database.execute("SELECT published FROM relay").fetchone()
    database.close()
    return value
