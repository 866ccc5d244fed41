"""Two workers, called through either: both know each change, and requests for the leader are forwarded to it."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import NewTopic

from keelman.api.copy.v1.copy_run_pb2 import CopyProgress
from keelman.kafka.clients import admin_client
from keelman.kafka.tables.reading import read_topic
from keelman.runtime.http.protocol import MAX_HEAD_BYTES
from keelman.worker.rest.forwarding.signatures import ALGORITHM, AUTHORIZATION
from support.eventually import eventually
from support.worker.processes import LinkSide, WorkerProcess, link_side, workers

pytestmark = pytest.mark.component

GROUP = "rest-pair"
SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "rest-pair-data"}
Pair = tuple[WorkerProcess, WorkerProcess, LinkSide]


@pytest.fixture(scope="module")
async def pair(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    """Two workers of a group, each with a place in it."""
    async with link_side() as (side, address):
        first, second = (
            WorkerProcess(tmp_path_factory.mktemp("worker"), bootstrap, GROUP, address, flags=("--log-json", "true"))
            for _ in range(2)
        )
        async with workers(first, second):
            yield first, second, side


async def rows(bootstrap: str, topic: str) -> dict[bytes, bytes | None]:
    """The newest value of each key."""
    actual_topic = await read_topic({"bootstrap.servers": bootstrap}, topic, client_id="rows", seconds=300)
    return {row.key: row.value for row in actual_topic}


async def test_what_one_was_told_the_other_knows(pair: Pair) -> None:
    item, two, _ = pair
    async with httpx.AsyncClient(timeout=300, trust_env=False) as client:  # connections stay open: no time to catch up

        async def ask(worker: WorkerProcess, method: str, path: str, body: Any = None) -> httpx.Response:
            return await client.request(method, f"http://{worker.id}{path}", json=body)

        for n in range(10):
            for first, second in ((item, two), (two, item)):
                name = f"both-{n}"
                response = await ask(first, "PUT", f"/connectors/{name}/config", {**SOURCE, "at": first.id})
                assert response.status_code in (200, 201), response.text
                assert (await ask(second, "GET", f"/connectors/{name}/config")).json()["at"] == first.id
                assert name in (await ask(second, "GET", "/connectors?expand=info")).json()
            assert (await ask(two, "GET", f"/connectors/{name}/status")).status_code == 200, "it is waited for"
            assert (await ask(item, "DELETE", f"/connectors/{name}")).status_code == 204
            assert (await ask(two, "GET", f"/connectors/{name}")).status_code == 404
            assert name not in (await ask(two, "GET", "/connectors")).json()


async def test_a_change_may_name_what_it_changes(pair: Pair) -> None:
    first, second, _ = pair
    await first.ask("PUT", "/connectors/tagged/config", SOURCE)
    tag = (await second.ask("GET", "/connectors/tagged/config")).headers["etag"]
    assert tag == (await first.ask("GET", "/connectors/tagged/config")).headers["etag"]
    match = {"If-Match": tag}
    for worker, status in ((second, 200), (first, 412)):
        answer = await worker.ask("PUT", "/connectors/tagged/config", {**SOURCE, "batch.size": 5}, headers=match)
        assert answer.status_code == status, answer.text
    assert (await second.ask("PATCH", "/connectors/tagged/config", {"a": "b"}, headers=match)).status_code == 412
    assert (await first.ask("GET", "/connectors/tagged/config")).json()["batch.size"] == "5"
    now = (await second.ask("GET", "/connectors/tagged")).headers["etag"]
    for worker, tagged, status in ((second, tag, 412), (first, now, 204)):
        answer = await worker.ask("DELETE", "/connectors/tagged", headers={"If-Match": tagged})
        assert answer.status_code == status, answer.text


async def test_a_repeated_create_gets_what_the_first_one_made(pair: Pair) -> None:
    new, ids = {"name": "again", "config": SOURCE}, {"keelman-request-id": "r-1"}
    uids = set()
    for worker in pair[:2]:
        answer = await worker.ask("POST", "/connectors", new, headers=ids)
        assert (answer.status_code, answer.json()["name"]) == (201, "again"), answer.text
        uids.add(answer.headers["keelman-uid"])
    assert len(uids) == 1
    first, second, _ = pair
    for worker, method, path, change in (
        (first, "PUT", "/connectors/again/config", {**SOURCE, "batch.size": "1"}),
        (second, "PATCH", "/connectors/again/config", {"batch.size": "2"}),
        (second, "GET", "/connectors/again", None),
        (first, "GET", "/connectors/again/config", None),
        (second, "POST", "/connectors", new),
    ):
        answer = await worker.ask(method, path, change, headers=ids if method == "POST" else {})
        assert {answer.headers["keelman-uid"]} == uids, answer.text
    assert answer.json()["config"]["batch.size"] == "2", "as it is now"
    for worker in (first, second):
        assert (await worker.ask("POST", "/connectors", new)).status_code == 409, "without an id"
        assert (await worker.ask("POST", "/connectors", new, headers={"keelman-request-id": "r-2"})).status_code == 409
        refused = await worker.ask("POST", "/connectors", new, headers={"keelman-request-id": "r" * 129})
        assert (refused.status_code, "keelman-request-id" in refused.text) == (400, True)
    assert (await first.ask("DELETE", "/connectors/again")).status_code == 204
    answer = await second.ask("POST", "/connectors", new, headers=ids)
    assert answer.status_code == 201
    assert answer.headers["keelman-uid"] not in uids, "another one of its name"
    assert (await first.ask("DELETE", "/connectors/again")).status_code == 204


async def test_whatever_is_repeated_with_its_id_is_done_once(pair: Pair) -> None:
    first, second, _ = pair
    path = "/connectors/once"
    await first.ask("PUT", f"{path}/config", SOURCE)
    tag = {"If-Match": (await second.ask("GET", path)).headers["etag"]}
    for method, to, body, status in (
        ("PUT", "/config", {**SOURCE, "batch.size": "5"}, 200),
        ("PATCH", "/config", {"batch.size": "6"}, 200),
        ("PUT", "/pause", None, 202),
        ("PUT", "/resume", None, 202),
        ("POST", "/restart?includeTasks=true", None, 202),
        ("PUT", "/stop", None, 204),
        ("DELETE", "", None, 204),
    ):
        ids = {"keelman-request-id": f"{method}{to}"}
        old = await second.ask(method, path + to, body, headers={"If-Match": "no such tag"})
        assert old.status_code == 412, (method, to, old.text)
        for worker in (second, first):
            answer = await worker.ask(method, path + to, body, headers={**ids, **tag})
            assert answer.status_code == status, (method, to, answer.text)
        if method != "DELETE":
            tag = {"If-Match": (await second.ask("GET", path)).headers["etag"]}
    assert (await first.ask("DELETE", path)).status_code == 404, "another request"
    await first.ask("PUT", f"{path}/config", SOURCE)
    assert (await first.ask("DELETE", path, headers={"keelman-request-id": "DELETE"})).status_code == 204
    assert (await first.ask("GET", path)).status_code == 200, "the deleted connector is another"
    assert (await first.ask("DELETE", path)).status_code == 204


async def test_the_largest_head_that_one_takes_the_other_takes_too(pair: Pair) -> None:
    """The worker forwards it to the other, with additional headers."""
    body = json.dumps(SOURCE).encode()
    head = (
        b"PUT /connectors/large/config HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nConnection: close\r\n"
    )
    head += b"Content-Length: %d\r\nAuthorization: Basic " % len(body)
    head += b"a" * (MAX_HEAD_BYTES - len(head) - 4) + b"\r\n\r\n"
    for worker in pair[:2]:
        host, _, port = worker.id.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head + body)
        async with asyncio.timeout(300):
            answer = await reader.read()
        writer.close()
        assert answer.split()[1] in (b"200", b"201"), answer
    assert (await pair[0].ask("DELETE", "/connectors/large")).status_code == 204


async def is_at(worker: WorkerProcess, logger: str, level: str) -> bool:
    """Whether the worker's logger has this level."""
    return bool((await worker.ask("GET", f"/admin/loggers/{logger}")).json().get("level") == level)


async def uses(worker: WorkerProcess, connector: str, topics: list[str]) -> bool:
    """Whether the worker reports these topics."""
    answer = await worker.ask("GET", f"/connectors/{connector}/topics")
    return bool(answer.json() == {connector: {"topics": topics}})


async def test_levels_of_all_workers(pair: Pair) -> None:
    first, second, _ = pair
    name = "org.apache.kafka.connect.runtime"
    changed = await first.ask("PUT", f"/admin/loggers/{name}", {"level": "ERROR"})
    assert (changed.status_code, changed.json()) == (200, [name])
    assert (await second.ask("GET", f"/admin/loggers/{name}")).status_code == 404, "one's own"
    assert (await second.ask("PUT", f"/admin/loggers/{name}?scope=cluster", {"level": "debug"})).status_code == 204
    for worker in (first, second):
        await eventually(partial(is_at, worker, name, "DEBUG"))
        assert "root" in (await worker.ask("GET", "/admin/loggers")).json()
    # The log follows the levels: nothing of the runtime below ERROR, then all of it again.
    await first.ask("PUT", f"/admin/loggers/{name}", {"level": "ERROR"})
    before = first.output
    await first.ask("PUT", "/connectors/quiet/config", {**SOURCE, "file": "/nowhere/quiet"})
    await first.reaches("quiet", "RUNNING", "RUNNING")
    assert not [line for line in first.output[len(before) :].splitlines() if '"level":"info"' in line.replace(" ", "")]
    await first.ask("PUT", f"/admin/loggers/{name}", {"level": "INFO"})
    await eventually(lambda: "log_level_set" in first.output[len(before) :])
    assert (await first.ask("DELETE", "/connectors/quiet")).status_code == 204


async def test_topics_in_use_are_told_by_every_worker(pair: Pair, bootstrap: str) -> None:
    first, second, side = pair
    await first.ask("PUT", "/connectors/user/config", SOURCE)
    (run,) = await eventually(lambda: side.of("user"))

    async def told(*topics: str) -> None:
        for worker in (first, second):
            await eventually(partial(uses, worker, "user", [*topics]), what=f"{worker.id} tells {topics}")

    side.copies(run, topics=["b", "a"], progress=CopyProgress(records=1))
    await told("a", "b")
    record = json.loads((await rows(bootstrap, f"{GROUP}-status"))[b"status-topic-a:connector-user"] or b"")
    assert record["topic"] | {"discoverTimestamp": 0} == {
        "name": "a",
        "connector": "user",
        "task": 0,
        "discoverTimestamp": 0,
    }
    assert (await second.ask("PUT", "/connectors/user/topics/reset")).status_code == 202
    await told()
    side.copies(run, topics=["a", "b"], progress=CopyProgress(records=1))  # nothing was copied in between
    side.copies(run, topics=["c"], progress=CopyProgress(records=2))
    await told("c")
    assert (await second.ask("DELETE", "/connectors/user")).status_code == 204
    await told()


async def produce(bootstrap: str, topic: str, *records: tuple[bytes, bytes]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        for key, value in records:
            await producer.send_and_wait(topic, value, key=key)
    finally:
        await producer.stop()


async def test_offsets_in_both_topics_under_the_keys_that_are_there(pair: Pair, bootstrap: str) -> None:
    first, second, _ = pair
    own, workers_topic = "rest-pair-own", f"{GROUP}-offsets"
    async with admin_client({"bootstrap.servers": bootstrap}, client_id="rest") as admin:
        await admin.create_topics([NewTopic(own, 2, 1, topic_configs={"cleanup.policy": "compact"})])
    # Another order of fields, and blanks, than our worker would write.
    odd = b'["owner", {"z": 1, "filename": "/nowhere/in"}]'
    await produce(bootstrap, workers_topic, (odd, b'{"position":1}'))
    await produce(bootstrap, own, (odd, b'{"position":2}'))
    await first.ask("PUT", "/connectors/owner/config", {**SOURCE, "offsets.storage.topic": own})
    await first.reaches("owner", "RUNNING", "RUNNING")
    path = "/connectors/owner/offsets"

    async def offsets(worker: WorkerProcess) -> Any:
        return {offset["offset"]["position"] for offset in (await worker.ask("GET", path)).json()["offsets"]}

    assert await offsets(second) == {2}, "the connector's own topic counts"
    partition = {"filename": "/nowhere/in", "z": 1}
    new = {"filename": "/nowhere/new"}
    body = {
        "offsets": [
            {"partition": partition, "offset": {"position": 7}},
            {"partition": new, "offset": {"position": 3}},
        ]
    }
    for worker in (first, second):
        assert (await worker.ask("PATCH", path, body)).status_code == 400, "it runs"
    assert (await second.ask("PUT", "/connectors/owner/stop")).status_code == 204
    for worker in (first, second):
        answer = await worker.ask("PATCH", path, body)
        assert answer.status_code == 200, answer.text
        assert await offsets(worker) == {7, 3}
    fresh = b'["owner",{"filename":"/nowhere/new"}]'
    for topic in (own, workers_topic):
        actual_rows = await rows(bootstrap, topic)
        assert (actual_rows[odd], actual_rows[fresh]) == (b'{"position":7}', b'{"position":3}'), topic
        assert len([key for key in actual_rows if b'"owner"' in key]) == 2, "no second key for a partition"
    assert (await second.ask("DELETE", path)).status_code == 200
    for topic in (own, workers_topic):
        actual_rows = await rows(bootstrap, topic)
        assert (actual_rows[odd], actual_rows[fresh]) == (None, None), topic
    assert (await first.ask("DELETE", "/connectors/owner")).status_code == 204


async def test_no_offsets_are_written_once_somebody_resumed(pair: Pair, bootstrap: str) -> None:
    first, second, _ = pair
    await first.ask("POST", "/connectors", {"name": "late", "config": SOURCE, "initial_state": "STOPPED"})
    await first.reaches("late", "STOPPED")
    body = {"offsets": [{"partition": {"filename": "/nowhere/in"}, "offset": {"position": 7}}]}
    answers: list[httpx.Response] = []
    assert (await second.ask("PUT", "/connectors/late/resume")).status_code == 202
    for worker in (first, second):
        answers.append(await worker.ask("PATCH", "/connectors/late/offsets", body))
        answers.append(await worker.ask("DELETE", "/connectors/late/offsets"))
    assert [answer.status_code for answer in answers] == [400] * 4
    await first.ask("POST", "/connectors", {"name": "rests", "config": SOURCE, "initial_state": "PAUSED"})
    await first.reaches("rests", "PAUSED")
    assert (await second.ask("PATCH", "/connectors/rests/offsets", body)).status_code == 400, "paused is not stopped"
    assert (await second.ask("DELETE", "/connectors/rests")).status_code == 204
    assert b'["late",{"filename":"/nowhere/in"}]' not in await rows(bootstrap, f"{GROUP}-offsets")
    assert (await first.ask("DELETE", "/connectors/late")).status_code == 204


@pytest.mark.parametrize("name", ["..", ".", "a/b c", "50%", "\N{ROCKET}"])
async def test_every_name_is_reached_through_every_worker(pair: Pair, name: str) -> None:
    """The path is forwarded unchanged: dots are not resolved on the way to the leader."""
    first, second, _ = pair
    path = f"/connectors/{quote(name, safe='')}"

    async def ask(worker: WorkerProcess, method: str, rest: str = "") -> int:
        target = {"target": f"{path}{rest}".encode()}  # httpx would normalize the path
        async with httpx.AsyncClient(timeout=300, trust_env=False) as client:
            return (await client.request(method, f"http://{worker.id}/", extensions=target)).status_code

    for worker in (first, second):
        response = await worker.ask("POST", "/connectors", {"name": name, "config": SOURCE})
        assert response.status_code == 201, response.text
        requests = [("GET", "", 200), ("PUT", "/stop", 204), ("GET", "/offsets", 200), ("DELETE", "", 204)]
        for method, rest, status in requests:
            assert await ask(worker, method, rest) == status, (method, rest)


async def test_what_came_too_late_is_not_done(pair: Pair) -> None:
    first, second, _ = pair
    for worker in (first, second):
        answer = await worker.ask("PUT", "/connectors/too-late/config", SOURCE, headers={"X-Keelman-Seconds": "0"})
        assert (answer.status_code, answer.json()["message"]) == (500, "Request timed out")
    assert "too-late" not in (await first.ask("GET", "/connectors")).json()


async def test_tasks_are_configured_by_who_has_the_groups_key(pair: Pair, bootstrap: str) -> None:
    first, second, _ = pair
    key = json.loads((await rows(bootstrap, f"{GROUP}-configs"))[b"session-key"] or b"")["key"]
    body = b'[{"a":"b"}]'
    signature = base64.b64encode(hmac.new(base64.b64decode(key), body, hashlib.sha256).digest()).decode()
    await first.ask("POST", "/connectors", {"name": "given", "config": SOURCE, "initial_state": "STOPPED"})
    for worker in (first, second):
        for name, status in (("given", 204), ("nobody", 404)):
            headers = {AUTHORIZATION: signature, ALGORITHM: "HmacSHA256"}
            answer = await worker.ask("POST", f"/connectors/{name}/tasks", content=body, headers=headers)
            assert answer.status_code == status, answer.text
        assert (await worker.ask("GET", "/connectors/given/tasks")).json()[0]["config"] == {"a": "b"}
    assert (await first.ask("DELETE", "/connectors/given")).status_code == 204
