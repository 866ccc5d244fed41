"""Connectors that are created at once: written together by the leader, each answered by itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping

import httpx
import pytest

from keelman.kafka.tables.reading import read_topic
from keelman.kafka.writer import MAX_BYTES, FencingWriter, TopicWriter
from keelman.model.errors import Conflict, Exhausted
from keelman.worker.storage.config_records import connector_record
from keelman.worker.storage.config_state import ConfigState
from support.eventually import eventually
from support.worker.processes import WorkerProcess, link_side, workers

pytestmark = pytest.mark.component

GROUP = "changes"
TOPIC = f"{GROUP}-configs"
TOPIC_BYTES = 100_000
SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "changes-data"}


@pytest.fixture(scope="module")
async def worker(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkerProcess]:
    """A worker of its own group, whose config topic accepts smaller records than its producer sends."""
    folder, limits = tmp_path_factory.mktemp("worker"), {"config.storage.max.message.bytes": str(TOPIC_BYTES)}
    async with link_side() as (_, address):
        worker_process = WorkerProcess(folder, bootstrap, GROUP, address, extra=limits)
        async with workers(worker_process):
            yield worker_process


async def created(worker: WorkerProcess, names: Iterable[str], **large: int) -> Mapping[str, httpx.Response]:
    """The answers to the creates, of as many clients at once; `large` gives some configurations a size."""

    async def create(name: str) -> tuple[str, httpx.Response]:
        config = {**SOURCE, **({"note": "x" * large[name]} if name in large else {})}
        return name, await worker.ask("POST", "/connectors", {"name": name, "config": config})

    return dict(await asyncio.gather(*(create(name) for name in names)))


async def stored(bootstrap: str) -> ConfigState:
    """The state in the config topic."""
    state = ConfigState()
    for row in await read_topic({"bootstrap.servers": bootstrap}, TOPIC, client_id="changes", seconds=300):
        state.apply(row.key.decode(), row.value, row.offset)
    return state


async def test_each_that_was_created_with_others_is_answered_by_itself(worker: WorkerProcess, bootstrap: str) -> None:
    good = [f"good-{n}" for n in range(10)]
    large = {"large-topic": 2 * TOPIC_BYTES, "large-request": 2 * MAX_BYTES}
    answers = await created(worker, [*good[:5], *large, *good[5:], "good-0"], **large)
    again = await worker.ask("POST", "/connectors", {"name": "good-1", "config": SOURCE})
    assert (again.status_code, again.json()["message"]) == (409, "Connector good-1 already exists")
    assert {answers[name].status_code for name in good[1:]} == {201}, [answer.text for answer in answers.values()]
    assert answers["good-3"].json()["config"] == {**SOURCE, "name": "good-3"}
    topic, request = answers["large-topic"], answers["large-request"]
    assert (topic.status_code, request.status_code) == (500, 500)
    assert f"topic {TOPIC} does not accept a record of this size" in topic.json()["message"]
    assert "max.message.bytes" in topic.json()["message"]
    assert f"larger than {MAX_BYTES}" in request.json()["message"]
    assert sorted((await worker.ask("GET", "/connectors")).json()) == sorted(good)
    assert sorted((await stored(bootstrap)).connectors) == sorted(good)


async def test_who_is_shut_out_meanwhile_claims_anew_and_writes_all(worker: WorkerProcess, bootstrap: str) -> None:
    names = [f"shut-out-{n}" for n in range(12)]
    other = FencingWriter(
        {"bootstrap.servers": bootstrap}, client_id="other", transactional_id=f"connect-cluster-{GROUP}"
    )

    async def writes(name: str) -> bool:
        """Whether it was not shut out between its claim and its write."""
        await other.claim()
        with contextlib.suppress(Conflict):
            await other.write(TOPIC, [connector_record(name, {**SOURCE, "name": name})])
            return True
        return False

    async def interfere() -> None:
        for _ in range(2):
            await writes("other")

    try:
        await eventually(lambda: writes("before"))  # the worker may still write the tasks of others
        refused = await worker.ask("POST", "/connectors", {"name": "before", "config": SOURCE})
        assert (refused.status_code, refused.json()["message"]) == (409, "Connector before already exists")
        answers, _ = await asyncio.gather(created(worker, names), interfere())
        assert {answer.status_code for answer in answers.values()} == {201}, [
            answer.text for answer in answers.values()
        ]
        await other.claim()
        assert (await created(worker, ["after"]))["after"].status_code == 201
        with pytest.raises(Conflict):
            await other.write(TOPIC, [connector_record("late", {**SOURCE, "name": "late"})])
    finally:
        await other.close()
    state = await stored(bootstrap)
    assert {*names, "before", "after"} <= state.connectors.keys()
    assert "late" not in state.connectors


async def test_a_writer_without_transactions_goes_on_behind_a_record_that_was_refused(
    worker: WorkerProcess, bootstrap: str
) -> None:
    large, small = (b"large", b"x" * 2 * TOPIC_BYTES), (b"small", b"x")
    async with TopicWriter.open({"bootstrap.servers": bootstrap}, client_id="plain") as writer:
        await writer.write(TOPIC, [small])
        for _ in range(2):
            with pytest.raises(Exhausted, match=r"max\.message\.bytes"):
                await writer.write(TOPIC, [small, large, small])
            assert (await writer.write(TOPIC, [small]))[0] > 0
        first, other = await asyncio.gather(
            writer.write(TOPIC, [large]), writer.write(TOPIC, [small]), return_exceptions=True
        )
    assert isinstance(first, Exhausted)
    assert isinstance(other, dict), f"what another wrote meanwhile: {other!r}"
