"""A leader leaves its group, breaks off or hangs: clients of the other worker do not notice."""

import asyncio
import itertools
import json
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from keelman.kafka.tables.reading import read_topic
from keelman.runtime.processes.ports import free_ports
from support.eventually import eventually
from support.proxy import Proxy, Tunnel
from support.worker.processes import LinkSide, WorkerProcess, link_side, workers

pytestmark = pytest.mark.component

GROUP = "leaves"
SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "leaves-data"}


@dataclass
class Loss:
    """Loses the next one of a worker's answers to others."""

    next: bool = False

    def tunnel(self, *values: Any) -> Tunnel:
        """A connection to the worker."""
        loss = self

        class Losing(Tunnel):
            async def answers(self) -> AsyncIterator[bytes]:
                async for chunk in super().answers():
                    if loss.next:
                        loss.next = False
                        self.cut()
                        return
                    yield chunk

        return Losing(*values)


@dataclass
class Pair:
    """The first leader, whose answers to the other worker can be lost, and the other worker."""

    one: WorkerProcess
    two: WorkerProcess
    loss: Loss
    side: LinkSide


@pytest.fixture(scope="module")
async def pair(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    """Two workers of a group, each with a place in it."""
    loss, (port,) = Loss(), free_ports(1)
    async with link_side() as (side, address), Proxy("127.0.0.1", port, tunnel=loss.tunnel) as proxy:

        def worker(**fields: Any) -> WorkerProcess:
            folder = tmp_path_factory.mktemp("worker")
            return WorkerProcess(folder, bootstrap, GROUP, address, flags=("--log-json", "true"), **fields)

        single_worker, two = worker(port=port, extra={"rest.advertised.port": str(proxy.port)}), worker()
        async with workers(single_worker, two):
            yield Pair(single_worker, two, loss, side)


def leads(worker: WorkerProcess) -> bool:
    """Whether the worker leads by its last place in the group."""
    return '"leader": true' in [line for line in worker.output.splitlines() if '"joined"' in line][-1]


async def test_what_a_lost_answer_was_about_is_not_done_twice(pair: Pair) -> None:
    """The leader handles a request and its answer is lost: the worker that forwarded the request repeats it."""
    two, lost = pair.two, pair.loss

    async def ask(method: str, path: str, body: Any = None, tag: str = "") -> httpx.Response:
        lost.next = True
        answer: httpx.Response = await two.ask(method, path, body, headers={"If-Match": tag} if tag else None)
        assert not lost.next, f"{method} {path} was not passed on"
        return answer

    async def tag() -> str:
        return str((await two.ask("GET", "/connectors/once/config")).headers["etag"])

    new = {"name": "once", "config": SOURCE}
    path, old = "/connectors/once", '"of-none"'
    response = await ask("POST", "/connectors", new)
    assert (response.status_code, response.json()["name"]) == (201, "once"), response.text
    assert response.headers["location"] == f"http://{two.id}{path}"
    # A request that was refused the first time is refused again.
    assert (await ask("POST", "/connectors", new)).json()["message"] == "Connector once already exists"
    assert (await ask("PUT", f"{path}/config", SOURCE, old)).status_code == 412
    assert (await ask("PATCH", f"{path}/config", {}, old)).status_code == 412
    assert (await ask("DELETE", "/connectors/never")).status_code == 404
    for method, change in (("PUT", {**SOURCE, "batch.size": "1"}), ("PATCH", {"batch.size": "2", "no": None})):
        answer = await ask(method, f"{path}/config", change, await tag())
        assert (answer.status_code, answer.json()["config"]["batch.size"]) == (200, change["batch.size"]), answer.text
    offsets = {"offsets": [{"partition": {"filename": "/nowhere/in"}, "offset": {"position": 7}}]}
    for method, rest, body, status in (
        ("POST", "restart", None, 204),
        ("POST", "restart?includeTasks=true", None, 202),
        ("PUT", "stop", None, 204),
        ("PATCH", "offsets", offsets, 200),
        ("DELETE", "offsets", None, 200),
    ):
        answer = await ask(method, f"{path}/{rest}", body)
        assert answer.status_code == status, answer.text
    records = await read_topic({"bootstrap.servers": two.bootstrap}, f"{GROUP}-configs", client_id="told", seconds=300)
    assert sum(row.key == b"restart-connector-once" for row in records) == 2, "each form once"
    assert (await ask("DELETE", path)).status_code == 204
    assert (await ask("DELETE", path)).status_code == 404


async def test_a_task_whose_restart_was_not_answered_is_restarted_once(pair: Pair) -> None:
    two, lost, side = pair.two, pair.loss, pair.side
    names = [f"task-{n}" for n in range(4)]
    for name in names:
        assert (await two.ask("POST", "/connectors", {"name": name, "config": SOURCE})).status_code == 201
    for name in names:
        await two.reaches(name, "RUNNING", "RUNNING")
    tasks = {name: (await two.ask("GET", f"/connectors/{name}/status")).json()["tasks"][0] for name in names}
    theirs = [name for name, task in tasks.items() if task["worker_id"] != two.id]
    assert theirs, "the leader has none"

    def runs() -> list[Any]:
        return [run for run in side.runs.values() if run.ticket.connector == theirs[0]]

    for number in (1, 2):  # another request is another restart
        before = len(runs())
        lost.next = True
        assert (await two.ask("POST", f"/connectors/{theirs[0]}/tasks/0/restart")).status_code == 204
        assert not lost.next, "it was not passed on"
        await eventually(lambda before=before: len(side.of(theirs[0])) == 1 and len(runs()) > before)  # type: ignore[misc]
        await two.reaches(theirs[0], "RUNNING", "RUNNING")
        assert len(runs()) == before + 1, number
    for name in names:
        assert (await two.ask("DELETE", f"/connectors/{name}")).status_code == 204


async def test_who_leaves_answers_what_has_begun(pair: Pair) -> None:
    """It accepts no more connections then, and leads until it has answered."""
    leader = pair.one
    assert leads(leader)
    assert leader.child is not None
    body = json.dumps({"name": "begun", "config": SOURCE}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", leader.port)
    head = f"POST /connectors HTTP/1.1\r\nHost: {leader.id}\r\nContent-Type: application/json\r\nExpect: 100-continue"
    writer.write(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
    async with asyncio.timeout(300):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 "), "it has begun"
        leader.child.send_signal(signal.SIGTERM)

        async def refuses() -> bool:
            try:
                (await asyncio.open_connection("127.0.0.1", leader.port))[1].close()
            except ConnectionRefusedError:
                return True
            return False

        await eventually(refuses)
        writer.write(body)
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 201 "), answer
        assert await leader.child.wait() == 0
    assert (await pair.two.ask("DELETE", "/connectors/begun")).status_code == 204


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSTOP])
async def test_no_client_notices_that_the_leader_leaves(pair: Pair, number: int) -> None:
    """Runs last: each case takes the leader away, the last one by a leader that hangs."""
    for worker in (pair.one, pair.two):
        if worker.child is None or worker.child.returncode is not None:
            await worker.start()
    leader, other = (pair.one, pair.two) if leads(pair.one) else (pair.two, pair.one)
    assert leads(leader)
    answers: list[httpx.Response] = []
    names = (f"passing-{number}-{n}" for n in itertools.count())
    gone = asyncio.Event()

    async def ask(method: str, path: str, body: Any = None) -> None:
        answers.append(await other.ask(method, path, body))

    async def change() -> None:
        while not gone.is_set() or len(answers) < 10:
            await ask("PUT", "/connectors/steady/config", {**SOURCE, "batch.size": len(answers)})

    async def come_and_go() -> None:
        while not gone.is_set() or len(answers) < 10:
            name = next(names)
            await ask("POST", "/connectors", {"name": name, "config": SOURCE})
            await ask("DELETE", f"/connectors/{name}")

    async def leave() -> None:
        await eventually(lambda: len(answers) > 5)
        assert leader.child is not None
        if number == signal.SIGTERM:
            assert await leader.end() == 0
        else:
            leader.child.send_signal(number)
            before = len(answers)
            await eventually(lambda: len(answers) > before + 5)
        gone.set()

    async with asyncio.TaskGroup() as group:
        for work in (change, come_and_go, leave):
            group.create_task(work())
    refused = [answer for answer in answers if answer.status_code not in (200, 201, 204)]
    assert not refused, [
        f"{response.request.method} {response.url.path} {response.status_code} {response.text}" for response in refused
    ]
    assert not [name for name in (await other.ask("GET", "/connectors")).json() if name.startswith("passing")]
