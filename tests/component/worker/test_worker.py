"""Workers as processes against a real broker: REST as Connect answers it, the group, the topics, tickets and fences."""

import re
import signal
from pathlib import Path

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import NewTopic
from aiokafka.errors import InvalidProducerEpoch, ProducerFenced

from keelman.api.copy.v1 import ticket_pb2 as tickets
from keelman.kafka.clients import Admin, admin_client
from keelman.kafka.tables.reading import read_topic
from keelman.kafka.topics import CompactedTopic, ensure_topics
from keelman.model.errors import FailedPrecondition, Unavailable
from keelman.model.work import Work
from support.eventually import eventually
from support.worker.processes import ENDED, LinkSide, WorkerProcess, survivors, workers

pytestmark = pytest.mark.component

SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "lines"}
SINK = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "topics": "lines"}


async def records(bootstrap: str, topic: str) -> dict[str, str | None]:
    """The newest value of each key."""
    rows = await read_topic({"bootstrap.servers": bootstrap}, topic, client_id="records", seconds=300)
    return {row.key.decode(): None if row.value is None else row.value.decode() for row in rows}


async def commit_offset(bootstrap: str, topic: str, key: bytes, value: bytes) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        await producer.send_and_wait(topic, value, key=key)
    finally:
        await producer.stop()


async def test_rest_answers_as_connect_does(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    side, address = link
    worker = WorkerProcess(tmp_path, bootstrap, "rest", address)
    async with workers(worker):
        root = (await worker.ask("GET", "/")).json()
        assert (root["version"], set(root)) == ("4.3.0", {"version", "commit", "kafka_cluster_id"})
        assert (await worker.ask("GET", "/health")).json()["status"] == "healthy"
        for method, path, status, message in (
            ("GET", "/connectors/x", 404, "Connector x not found"),
            ("GET", "/connectors/x/config", 404, "Connector x not found"),
            ("GET", "/connectors/x/status", 404, "No status found for connector x"),
            ("PUT", "/connectors/x/pause", 404, "Unknown connector x"),
            ("PUT", "/connectors/x/stop", 404, "Unknown connector x"),
            ("DELETE", "/connectors/x", 404, "Connector x not found"),
            ("POST", "/connectors/x/tasks/0/restart", 404, "Unknown connector: x"),
            ("DELETE", "/connectors", 405, "HTTP 405 Method Not Allowed"),
            ("GET", "/nothing/here", 404, "HTTP 404 Not Found"),
        ):
            answer = await worker.ask(method, path)
            assert (answer.status_code, answer.json()) == (status, {"error_code": status, "message": message}), path
        broken = await worker.ask("POST", "/connectors", content="{", headers={"Content-Type": "application/json"})
        assert (broken.status_code, broken.json()["error_code"]) == (500, 500)
        form = await worker.ask("POST", "/connectors", content="a=b", headers={"Content-Type": "text/plain"})
        assert form.status_code == 415
        unknown = await worker.ask("POST", "/connectors", {"name": "u", "config": {"connector.class": "com.acme.No"}})
        assert unknown.status_code == 400
        assert unknown.json()["message"].startswith(
            "Failed to find any class that implements Connector and which name matches com.acme.No, available conn"
        )
        none = await worker.ask("POST", "/connectors", {"name": "u", "config": {"a": "b"}})
        assert none.json()["message"] == "Connector config {name=u, a=b} contains no connector type"
        bad = await worker.ask("POST", "/connectors", {"name": "u", "config": {**SOURCE, "tasks.max": "many"}})
        assert (bad.status_code, bad.json()["message"]) == (
            400,
            "Connector configuration is invalid and contains the following 2 error(s):\n"
            "Invalid value many for configuration tasks.max: Not a number of type INT\n"
            "Invalid value null for configuration tasks.max: Value must be non-null\n"
            "You can also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`",
        )
        assert (await worker.ask("GET", "/connectors")).json() == []

        response = await worker.ask(
            "POST", "/connectors", {"name": " s/1 ", "config": SOURCE, "initial_state": "paused"}
        )
        assert (response.status_code, response.headers["location"]) == (201, f"http://{worker.id}/connectors/s%2F1")
        assert response.json() == {"name": "s/1", "config": {**SOURCE, "name": "s/1"}, "tasks": [], "type": "source"}
        again = await worker.ask("POST", "/connectors", {"name": "s/1", "config": SOURCE})
        assert (again.status_code, again.json()["message"]) == (409, "Connector s/1 already exists")
        other = await worker.ask("PUT", "/connectors/s%2F1/config", {**SOURCE, "name": "t"})
        assert other.status_code == 400
        await worker.reaches("s%2F1", "PAUSED")
        assert not side.runs
        changed = await worker.ask("PUT", "/connectors/s%2F1/config", {**SOURCE, "batch.size": 7})
        assert (changed.status_code, changed.json()["config"]["batch.size"]) == (200, "7")
        assert (await worker.ask("GET", "/connectors/s%2F1/config")).json()["batch.size"] == "7"
        patched = await worker.ask("PATCH", "/connectors/s%2F1/config", {"batch.size": None})
        assert "batch.size" not in patched.json()["config"]
        assert (await worker.ask("GET", "/connectors/s%2F1/tasks")).json() == [], "as Connect: none before it has run"
        await worker.ask("PUT", "/connectors/s%2F1/resume")
        await worker.reaches("s%2F1", "RUNNING", "RUNNING")
        tasks = (await worker.ask("GET", "/connectors/s%2F1/tasks")).json()
        assert tasks[0]["id"] == {"connector": "s/1", "task": 0}
        assert tasks[0]["config"]["task.class"] == "org.apache.kafka.connect.file.FileStreamSourceTask"
        expanded = (await worker.ask("GET", "/connectors?expand=info&expand=status&expand=nonsense")).json()
        assert set(expanded["s/1"]) == {"info", "status"}
        classes = {p["class"]: p["type"] for p in (await worker.ask("GET", "/connector-plugins")).json()}
        assert classes["org.apache.kafka.connect.file.FileStreamSinkConnector"] == "sink"
        path = "/connector-plugins/FileStreamSource/config/validate"
        infos = (await worker.ask("PUT", path, {"connector.class": "FileStreamSource", "topic": "t"})).json()
        assert infos["error_count"] == 1, "the name is missing"
        gone = await worker.ask("DELETE", "/connectors/s%2F1")
        assert (gone.status_code, gone.content) == (204, b"")
        await eventually(lambda: _no_status(worker, "s%2F1"))
        topic = await records(bootstrap, "rest-configs")
        assert '"algorithm":"HmacSHA256"' in (topic.pop("session-key") or "")
        # The number of producers to fence outlives the connector: a new connector may have the same name.
        assert topic.pop("tasks-fencing-s/1") == '{"task-count":1}'
        assert topic == dict.fromkeys(["connector-s/1", "target-state-s/1", "task-s/1-0", "commit-s/1"])
        assert await worker.end() == 0


async def _no_status(worker: WorkerProcess, name: str) -> bool:
    return (await worker.ask("GET", f"/connectors/{name}/status")).status_code == 404


async def test_a_task_from_ticket_to_end(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    side, address = link
    # A dead member does not lapse while this test waits, and its farewell would be its agent's task: its successor has
    # to replace it.
    late = {"session.timeout.ms": "120000", "keelman.restart.backoff.ms": "60000"}
    flags = ("--member-file", str(tmp_path / "member.json"))
    worker = WorkerProcess(tmp_path, bootstrap, "life", address, late, flags=flags)
    async with workers(worker):
        key, value = b'["src",{"filename":"/nowhere/in"}]', b'{"position":77}'
        await commit_offset(bootstrap, "life-offsets", key, value)
        await commit_offset(bootstrap, "life-offsets", b'["other",{"filename":"/nowhere/in"}]', value)
        await worker.ask("POST", "/connectors", {"name": "src", "config": SOURCE})
        await worker.reaches("src", "RUNNING", "RUNNING")
        (run,) = side.of("src")
        ticket = run.ticket
        assert run.confirmed == [(key, value)]
        assert ticket.transactional_id == "life-src-0"
        assert ticket.delivery == tickets.DELIVERY_GUARANTEE_EXACTLY_ONCE
        assert (ticket.offset_topic, ticket.worker_id, ticket.worker_cluster) == ("life-offsets", worker.id, "life")
        assert ticket.worker_config["bootstrap.servers"] == bootstrap
        assert "listeners" not in ticket.worker_config
        assert (await worker.ask("GET", "/connectors/src/offsets")).json() == {
            "offsets": [{"partition": {"filename": "/nowhere/in"}, "offset": {"position": 77}}]
        }
        await eventually(lambda: side.renewals.get(worker.id, 0) >= 2, what="the lease is renewed")

        assert (await worker.ask("PUT", "/connectors/src/pause")).status_code == 202
        await worker.reaches("src", "PAUSED", "PAUSED")
        assert (run.state, run.cut) == (ENDED, ""), "drained, not cut"
        assert (await worker.ask("PUT", "/connectors/src/resume")).status_code == 202
        await worker.reaches("src", "RUNNING", "RUNNING")

        (run,) = side.of("src")
        side.fail(run, retriable=True)
        await eventually(lambda: side.of("src"), what="a new ticket after a failure that it can help")
        await worker.reaches("src", "RUNNING", "RUNNING")
        (run,) = side.of("src")
        side.fail(run, retriable=False, trace="java.lang.Sorry\n")
        await worker.reaches("src", "RUNNING", "FAILED")
        status = (await worker.ask("GET", "/connectors/src/tasks/0/status")).json()
        assert (status["trace"].partition("Next automatic restart")[0], status["worker_id"]) == (
            "java.lang.Sorry\n",
            worker.id,
        )
        restarted = await worker.ask("POST", "/connectors/src/restart?includeTasks=true&onlyFailed=true")
        assert restarted.status_code == 202
        assert [t["state"] for t in restarted.json()["tasks"]] == ["RESTARTING"]
        assert restarted.json()["connector"]["state"] == "RUNNING"
        await worker.reaches("src", "RUNNING", "RUNNING")
        (run,) = side.of("src")
        assert (await worker.ask("POST", "/connectors/src/tasks/0/restart")).status_code == 204
        await eventually(lambda: [r for r in side.of("src") if r is not run], what="a new run")
        assert (await worker.ask("PUT", "/connectors/src/stop")).status_code == 204
        await worker.reaches("src", "STOPPED")
        assert (await worker.ask("GET", "/connectors/src/tasks")).json() == []
        await worker.ask("PUT", "/connectors/src/resume")
        await worker.reaches("src", "RUNNING", "RUNNING")

        await worker.ask("PUT", "/connectors/snk/config", {**SINK, "file": str(tmp_path / "out")})
        await worker.reaches("snk", "RUNNING", "RUNNING")
        (run,) = side.of("snk")
        assert (run.confirmed, run.ticket.transactional_id, run.ticket.offset_topic) == ([], "", "")

        killed = side.of("src")
        await worker.end(signal.SIGKILL)
        await worker.start()
        await eventually(lambda: [r for r in side.of("src") if r not in killed], what="the task continues")
        await worker.reaches("src", "RUNNING", "RUNNING")
        assert re.search(r"replacing_member", worker.output), "the dead member was let go"
        assert await worker.end() == 0
        statuses = await records(bootstrap, "life-status")
        assert '"state":"UNASSIGNED"' in (statuses["status-task-src-0"] or "")
        assert all(run.state == ENDED and not run.cut for run in side.of("src", state=ENDED)[-1:])


async def test_workers_share_and_take_over(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    side, address = link
    worker_process = WorkerProcess(tmp_path / "one", bootstrap, "many", address)
    two = WorkerProcess(tmp_path / "two", bootstrap, "many", address)
    names = [f"c{n}" for n in range(4)]

    def at(worker: WorkerProcess) -> list[str]:
        return sorted(n for n in names if any(r.worker == worker.id for r in side.of(n)))

    async with workers(worker_process):
        for name in names:
            await worker_process.ask("POST", "/connectors", {"name": name, "config": SOURCE})
        await eventually(lambda: at(worker_process) == names, what="one worker has all")
        async with workers(two):
            await eventually(lambda: len(at(worker_process)) == len(at(two)) == 2, what="two workers share")
            assert sorted(at(worker_process) + at(two)) == names
            assert all(not r.cut for r in side.runs.values()), "moved work was drained"

            response = await two.ask("POST", "/connectors", {"name": "late", "config": SOURCE})
            assert (response.status_code, response.headers["location"]) == (201, f"http://{two.id}/connectors/late")
            assert "late" in (await two.ask("GET", "/connectors")).json(), "a worker reads its own last write"
            names.append("late")
            await eventually(lambda: sorted(at(worker_process) + at(two)) == sorted(names))
            mine = at(worker_process)[0]
            before = side.of(mine)
            assert (await two.ask("POST", f"/connectors/{mine}/tasks/0/restart")).status_code == 204
            await eventually(lambda: side.of(mine) and side.of(mine) != before, what="its owner restarted the task")

            two.child.send_signal(signal.SIGSTOP) if two.child else None
            try:
                await eventually(lambda: at(worker_process) == sorted(names), what="a frozen worker loses its work")
            finally:
                two.child.send_signal(signal.SIGCONT) if two.child else None
            await eventually(lambda: len(at(two)) >= 2, what="and gets its share when it is back")
            assert await worker_process.end() == 0, "the leader leaves"
            await eventually(lambda: at(two) == sorted(names), what="its work moves")
            assert await two.end() == 0
    async with workers(worker_process):
        assert (await worker_process.ask("GET", "/connectors")).json() == sorted(names), "the topics remember"
        await eventually(lambda: at(worker_process) == sorted(names))


async def test_a_cluster_of_java_workers_is_taken_over(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path
) -> None:
    """The topics as Java workers leave them: three tasks, whose producers may still be alive somewhere."""
    _, address = link
    config, half = {**SOURCE, "name": "old"}, {**SOURCE, "name": "half"}
    stored: list[tuple[str, object]] = [
        ("session-key", {"key": "AA==", "algorithm": "HmacSHA256", "creation-timestamp": 1}),
        ("connector-old", {"properties": config}),
        *((f"task-old-{n}", {"properties": {"task.class": "T", "n": str(n)}}) for n in range(3)),
        ("commit-old", {"tasks": 3}),
        ("tasks-fencing-old", {"task-count": 3}),
        # A leader ended after it had put the one task into force and before it fenced the two before it.
        ("connector-half", {"properties": half}),
        ("tasks-fencing-half", {"task-count": 2}),
        ("task-half-0", {"properties": {"task.class": "org.apache.kafka.connect.file.FileStreamSourceTask", **half}}),
        ("commit-half", {"tasks": 1}),
        # The remains of a compacted topic in which a connector was changed without its tasks being written afterwards.
        ("task-limited-0", {"properties": {"task.class": "T"}}),
        ("commit-limited", {"tasks": 1}),
        ("connector-limited", {"properties": {**SOURCE, "name": "limited", "keelman.limit.records.per.second": "5"}}),
        ("connector-alien", {"properties": {"name": "alien", "connector.class": "com.acme.Alien"}}),
        ("task-alien-0", {"properties": {"task.class": "com.acme.AlienTask"}}),
        ("commit-alien", {"tasks": 1}),
    ]
    async with admin_client({"bootstrap.servers": bootstrap}, client_id="java") as admin:
        await ensured(admin, CompactedTopic("taken-configs", 1, exact=True))
        await ensured(admin, CompactedTopic("taken-lines", 1))
    for key, value in stored:
        await commit_offset(bootstrap, "taken-configs", key.encode(), orjson.dumps(value))
    zombie = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="taken-old-2")
    await zombie.start()
    try:
        await zombie.begin_transaction()
        await zombie.send_and_wait("taken-lines", b"a line", key=b"k")
        worker = WorkerProcess(tmp_path, bootstrap, "taken", address)
        async with workers(worker):
            await worker.reaches("old", "RUNNING", "RUNNING")

            async def fenced() -> bool:  # the first of the three tasks runs before that, too
                return (await records(bootstrap, "taken-configs"))["tasks-fencing-old"] == '{"task-count":1}'

            await eventually(fenced, what="the producers of the three tasks are fenced")
            with pytest.raises((ProducerFenced, InvalidProducerEpoch)):
                await zombie.commit_transaction()
            await worker.reaches("alien", "FAILED", "FAILED")
            trace = (await worker.ask("GET", "/connectors/alien/status")).json()["connector"]["trace"]
            assert trace.startswith("org.apache.kafka.connect.errors.ConnectException: Failed to find any class")
            assert "com.acme.Alien" in trace
            await worker.reaches("half", "RUNNING", "RUNNING")
            await worker.reaches("limited", "RUNNING", "RUNNING")
            rows = await read_topic({"bootstrap.servers": bootstrap}, "taken-configs", client_id="t", seconds=300)
            assert Work("limited", 0) in survivors(rows).work()
            topic = await records(bootstrap, "taken-configs")
            assert topic["commit-old"] == '{"tasks":1}'
            assert topic["tasks-fencing-old"] == '{"task-count":1}'
            assert topic["tasks-fencing-half"] == '{"task-count":1}'
            assert topic["commit-alien"] == '{"tasks":1}', "connectors that no worker here can run are left alone"
            assert await worker.end() == 0
    finally:
        await zombie.stop()


async def refused(worker: WorkerProcess) -> str:
    await worker.spawn()
    assert worker.child is not None
    assert await worker.child.wait() in (1, 2)
    (line,) = [line for line in worker.output.splitlines() if line.startswith("keelman worker: ")]
    return line


async def test_what_cannot_be_is_said_in_one_message(bootstrap: str, tmp_path: Path) -> None:
    session = WorkerProcess(tmp_path / "s", bootstrap, "bad", "127.0.0.1:1", {"session.timeout.ms": "2000"})
    place = rf"{re.escape(str(tmp_path / 's' / 'worker.properties'))}, line \d+"
    assert re.match(rf"keelman worker: {place}: session\.timeout\.ms: the broker refuses it", await refused(session))
    taken = WorkerProcess(tmp_path / "t", bootstrap, "bad", "127.0.0.1:1", port=int(bootstrap.rpartition(":")[2]))
    assert f"listeners: port {taken.port} on 127.0.0.1 is taken" in await refused(taken)


async def test_topics_are_made_as_wanted_and_wrong_ones_refused(bootstrap: str) -> None:
    async with admin_client({"bootstrap.servers": bootstrap}, client_id="topics") as admin:
        compact = {"cleanup.policy": "compact"}
        await admin.create_topics([NewTopic("two", 2, 1, topic_configs=compact), NewTopic("kept", 3, 1)])
        compacted_topic = CompactedTopic(
            "made", 3, settings={"segment.bytes": "1048576"}, setting_key="config.storage.topic"
        )
        for expected, problem in (
            (
                CompactedTopic("two", 1, exact=True, setting_key="k"),
                "k: topic two has 2 partitions, needed are exactly 1",
            ),
            (CompactedTopic("kept", 3, setting_key="k"), "k: topic kept has cleanup.policy=delete, needed is cleanup"),
            (CompactedTopic("far", 1, 9, setting_key="k"), "k: topic far cannot be created with 1 partitions and repl"),
        ):
            with pytest.raises(FailedPrecondition, match=problem):
                await ensured(admin, expected)
        assert await ensured(admin, compacted_topic) == [3]
        assert await ensured(admin, CompactedTopic("two", 5)) == [2], "an existing topic keeps its partitions"
        assert await ensured(admin, CompactedTopic("as-the-brokers-do", -1, -1)) == [1]


async def ensured(admin: Admin, topic: CompactedTopic) -> list[int]:
    """Waits as a worker does while a new topic is not known to every broker."""

    async def made() -> list[int]:
        try:
            return await ensure_topics(admin, [topic])
        except Unavailable as error:
            raise LookupError(error.message) from None

    return await eventually(made)


async def test_a_worker_waits_for_its_brokers(tmp_path: Path, link: tuple[LinkSide, str]) -> None:
    worker = WorkerProcess(tmp_path, "127.0.0.1:1", "waits", link[1])
    await worker.spawn()
    try:
        await eventually(lambda: "waiting_for_brokers" in worker.output)
        health = await worker.ask("GET", "/health")
        assert (health.status_code, health.json()["status"]) == (503, "starting")
        assert (await worker.ask("GET", "/connectors")).status_code == 503
        assert await worker.end() == 0
    finally:
        if worker.child is not None and worker.child.returncode is None:
            worker.child.kill()


async def test_a_group_of_other_members_is_left_alone(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path
) -> None:
    """A consumer group replaces Java workers here: to the broker both are members with another protocol."""
    async with workers(WorkerProcess(tmp_path / "first", bootstrap, "topics", link[1])):
        consumer = AIOKafkaConsumer("topics-configs", bootstrap_servers=bootstrap, group_id="others")
        await consumer.start()
        try:
            await eventually(consumer.assignment)
            message = await refused(WorkerProcess(tmp_path / "second", bootstrap, "others", link[1]))
            assert re.search(r"group others has consumers \(.+@.+\): stop them first", message)
        finally:
            await consumer.stop()
