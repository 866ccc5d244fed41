"""Logs of workers are delivered: each line once and in order, whichever process dies in between."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import obstore
import pytest
from confluent_kafka import Consumer, TopicPartition

from keelman.agent.shipping.progress import DeliveryProgress
from keelman.agent.shipping.shipping import bucket_keys_file
from keelman.agent.shipping.source import Batch, Source, Stream
from keelman.agent.shipping.topic_target import TopicTarget
from keelman.api.node.v1.workload_pb2 import LogProblem, LogTargets
from keelman.model.errors import Unavailable
from keelman.runtime.logs.parts import Log, PartsReader
from support.agent.agents import REMOVED, Node, alive, running_node, workload
from support.brokers.broker import started_broker
from support.eventually import eventually
from support.kafka.topics import AT_ONCE
from support.servers.object_store import KEY, SECRET, object_store

pytestmark = pytest.mark.component
NAME = "worker/demo/0"
FORM = re.compile(rb"\[Worker-[0-9a-f]{17}\] line (\d+)")
# Continues counting where the process before it ended: its log is the only thing that both write.
WRITER = """
import os, re, time
text = open('log', 'rb').read().strip(b'\\0') if os.path.exists('log') else b''
import glob, gzip
for part in glob.glob('log.*.gz'):
    text = gzip.open(part).read() + text
last = re.findall(rb'^line (\\d+)$', text, re.M)
n = max(map(int, last), default=-1) + 1
while True:
    for _ in range(20):
        os.write(1, b'line %d\\n' % n)
        n += 1
    time.sleep(0.02)
"""
NO_STREAM = Stream("demo-0", NAME, Path("none"), "0" * 17)
MANY_PARTS = {"log_bytes": "4096", "log_parts": "3"}


def written(node: Node) -> int:
    """The number of lines that the worker has written, by the last one in its log."""
    with PartsReader(Log(node.home.workload(NAME) / "log")) as reader:
        lines = re.findall(rb"^line (\d+)$", reader.last_bytes(4096), re.MULTILINE)
    return int(lines[-1]) + 1 if lines else 0


def text_of(file: Path) -> bytes:
    """The content of a delivered file with its parts."""
    if not file.exists():
        return b""
    with PartsReader(Log(file)) as reader:
        text, at = b"", reader.begin()
        while True:
            piece, at = reader.read(at)
            if not piece:
                return text
            text += piece


def judge(lines: Sequence[bytes]) -> int:
    """The number of numbered lines; fails unless they are 0, 1, 2 and so on."""
    numbers = []
    for line in lines:
        match = FORM.fullmatch(line)
        assert match, line
        numbers.append(int(match[1]))
    assert numbers == list(range(len(numbers))), next(
        (numbers[max(0, i - 2) : i + 3] for i, n in enumerate(numbers) if n != i), None
    )
    return len(numbers)


def pid_of(node: Node) -> int:
    return node.state.statuses[NAME].pid if NAME in node.state.statuses else 0


async def kill_worker(node: Node) -> None:
    """Kills the worker, and returns once there is another."""
    old = pid_of(node)
    os.kill(old, signal.SIGKILL)
    await eventually(lambda: pid_of(node) not in (0, old) and alive(pid_of(node)))


async def grown(node: Node, lines: int = 600) -> None:
    """Returns once the worker has written so many lines more."""
    at = written(node)
    await eventually(lambda: written(node) >= at + lines)


async def deaths(node: Node, **settings: str) -> None:
    """Kills the worker, the agent, both, again and again, while the log is written and cut."""
    agent = node.agents[-1]
    for _ in range(3):
        await grown(node)
        await kill_worker(node)
        await grown(node)
        await node.end(agent, signal.SIGKILL)
        agent = node.agent(**settings)
        await grown(node)


async def to_files(node: Node) -> None:
    settings = {**MANY_PARTS, "log_parts": "1000"}
    node.state.assign(workload(script=WRITER, log_targets=LogTargets(name="orders", file_group="/groups/a")))
    node.agent(**settings)
    file = node.home.root / "log-delivery" / "groups" / "a" / "orders" / "demo-0"
    await eventually(lambda: node.state.in_state(NAME, "STARTING"))
    await deaths(node, **settings)
    end = written(node)
    await eventually(lambda: judge(text_of(file).splitlines()) >= end)
    assert len(Log(file).parts()) > 3


async def test_the_rest_of_a_log_is_delivered_before_it_is_removed(node: Node) -> None:
    script = "import os, time\nfor n in range(5000): os.write(1, b'line %d\\n' % n)\n"
    script += "os.write(1, b'line 5000')\ntime.sleep(600)"
    targets = LogTargets(name="orders", file_group="a")
    node.state.assign(workload(script=script, log_targets=targets))
    node.agent()
    await eventually(lambda: node.state.in_state(NAME, "STARTING"))
    await eventually(lambda: written(node) >= 5000)
    node.state.assign(workload(script=script, log_targets=targets, generation=2, goal=REMOVED))
    await eventually(lambda: node.state.in_state(NAME, "REMOVED"))
    assert judge(text_of(node.home.root / "log-delivery" / "a" / "orders" / "demo-0").splitlines()) == 5001
    assert not node.home.workload(NAME).exists()


def objects(folder: Path) -> list[bytes]:
    """The lines of all objects, in the order of their keys."""
    text = b"".join(gzip.decompress(path.read_bytes()) for path in sorted(folder.rglob("*.log.gz")))
    return text.splitlines()


async def to_objects(node: Node) -> None:
    """The target is unavailable at first."""
    settings = {**MANY_PARTS, "log_object_bytes": "20000", "log_object_seconds": "1"}
    buckets = node.folder / "buckets"
    buckets.write_text("in the way")  # nothing can be put there at first
    targets = LogTargets(name="orders", bucket="logs", prefix="a/b", buckets=str(buckets))
    node.state.assign(workload(script=WRITER, log_targets=targets))
    node.agent(**settings)
    await eventually(lambda: node.state.in_state(NAME, "STARTING"))
    await grown(node, 3000)
    await eventually(lambda: "log_not_delivered" in node.log_of_agent())
    log = Log(node.home.workload(NAME) / "log")
    await eventually(lambda: len(log.parts()) > 3)  # the parts are kept until they are delivered
    buckets.unlink()
    await deaths(node, **settings)
    end = written(node)
    folder = buckets / "logs" / "a" / "b" / "orders" / "demo-0"
    await eventually(lambda: judge(objects(folder)) >= end)
    await eventually(lambda: len(log.parts()) <= 4)


async def objects_of(bucket: Any) -> list[bytes]:
    """The lines of all objects of an S3 server's bucket, in the order of their keys."""
    actual_objects: list[bytes] = []
    keys = sorted([entry["path"] async for page in obstore.list(bucket) for entry in page])
    for key in keys:
        content = await (await obstore.get_async(bucket, key)).bytes_async()
        actual_objects += gzip.decompress(bytes(content)).splitlines()
    return actual_objects


async def to_objects_of_a_server(node: Node) -> None:
    """With keys for the agent that are wrong at first."""
    settings = {**MANY_PARTS, "log_parts": "1000", "log_object_bytes": "20000", "log_object_seconds": "1"}
    async with object_store(node.folder / "s3") as server:
        bucket = await server.create("logs")
        node.state.give_keys(server.endpoint, KEY, "not-the-secret-4711")
        targets = LogTargets(name="orders", bucket="logs", prefix="a", buckets=server.endpoint)
        node.state.assign(workload(script=WRITER, log_targets=targets))
        begun = time.time()
        node.agent(**settings)

        def problems() -> list[LogProblem]:
            return list(node.state.statuses[NAME].log_problems) if NAME in node.state.statuses else []

        (problem,) = await eventually(problems, what="the status has the reason")
        assert (problem.stream, problem.target) == ("demo-0", "s3")
        assert f"{server.endpoint}, bucket logs: the server refuses the access key" in problem.message
        assert begun <= problem.since.seconds + 1 <= time.time() + 1
        node.state.give_keys(server.endpoint, KEY, SECRET)
        await eventually(lambda: not problems(), what="it is over")
        await deaths(node, **settings)
        end = written(node)

        async def are_there() -> bool:
            return judge(await objects_of(bucket)) >= end

        await eventually(are_there, what="all lines are there")
        stored_bucket_keys_file = bucket_keys_file(node.home)
        assert stored_bucket_keys_file.stat().st_mode & 0o777 == 0o600
        logs = "".join(node.log_of_agent(number) for number in range(len(node.agents)))
        assert SECRET not in logs
        assert "not-the-secret-4711" not in logs
        assert not any(
            SECRET in file.read_text(errors="replace")
            for file in files_of(node.home.root)
            if file != stored_bucket_keys_file
        )


def files_of(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def records(bootstrap: str, topic: str) -> list[tuple[bytes, bytes]]:
    """Keys and values of all committed records, in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed",
            "enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "earliest", **AT_ONCE,
        }
    )  # fmt: skip
    actual_records: list[tuple[bytes, bytes]] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(30)) is not None:
            if message.error():
                break
            actual_records.append((message.key() or b"", message.value() or b""))
    finally:
        consumer.close()
    return actual_records


async def to_a_topic(node: Node) -> None:
    """Its broker is killed too."""
    async with started_broker(node.folder / "broker") as broker:
        targets = LogTargets(name="orders", topic="logs")
        node.state.assign(workload(script=WRITER, log_targets=targets, **{"bootstrap.servers": broker.bootstrap}))
        node.agent(**MANY_PARTS)
        await eventually(lambda: node.state.in_state(NAME, "STARTING"))
        await deaths(node, **MANY_PARTS)
        await broker.end(signal.SIGKILL)
        await grown(node, 3000)
        await eventually(lambda: "log_not_delivered" in node.log_of_agent())
        await broker.start()
        await eventually(lambda: "log_delivered_again" in node.log_of_agent())
        end = written(node)

        async def all_there() -> bool:
            actual_records = await asyncio.to_thread(records, broker.bootstrap, "logs")
            assert {key for key, _ in actual_records} <= {b"orders/demo-0"}
            return judge([value for _, value in actual_records]) >= end

        await eventually(all_there)


TARGETS = (to_files, to_objects, to_objects_of_a_server, to_a_topic)


async def test_each_target_gets_each_line_once_while_workers_and_agents_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each target has a node of its own, side by side."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)

    async def delivered(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        async with running_node(folder) as node:
            await TARGETS[number](node)

    async with asyncio.TaskGroup() as group:
        for number, target in enumerate(TARGETS):
            group.create_task(delivered(number), name=target.__name__)


async def test_the_brokers_position_wins_over_one_that_a_killed_agent_did_not_keep(bootstrap: str, name: str) -> None:
    target = TopicTarget({"bootstrap.servers": bootstrap}, name, "orders/demo-0", f"keelman-logs-{name}")
    source, progress, batch = Source(NO_STREAM), DeliveryProgress(0, 7), Batch((b"a", b"b"), 4, mine=True)
    async with target.opened(source) as writer:
        assert await writer.resume(progress) == progress
        after = await writer.write(batch, progress)  # and is killed
    async with target.opened(source) as writer:
        assert await writer.resume(progress) == after == replace(progress, position=4, mine=True)
        assert await writer.resume(replace(progress, inode=8)) == replace(progress, inode=8)  # of another log file
        assert await writer.resume(replace(after, position=5)) == replace(after, position=5)
        other = DeliveryProgress(0, 7)  # of another worker of that name
        assert await writer.resume(other) == other
        async with target.opened(source) as second:
            with pytest.raises(Unavailable):  # it is shut out
                await writer.write(batch, after)
            assert await second.resume(progress) == after
    actual_records = await asyncio.to_thread(records, bootstrap, name)
    assert actual_records == [(b"orders/demo-0", b"a"), (b"orders/demo-0", b"b")]
