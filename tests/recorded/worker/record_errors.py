"""Records how Kafka Connect's sinks treat bad records: writes errors.json beside this.

Run it by hand: `python -m recorded.worker.record_errors`. It starts a broker and a real worker, fills a topic for each
of `errors_cases`, and keeps the dead letters, the written lines and, if a task failed, its trace.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from aiokafka.admin import NewTopic
from confluent_kafka import Consumer, Producer, TopicPartition

from keelman.kafka.clients import admin_client
from recorded.one_a_line import one_a_line
from recorded.worker.errors_cases import CASES, Case, shown
from support.brokers.broker import running_broker
from support.eventually import eventually
from support.servers.connect_worker import ConnectProcess

HERE = Path(__file__).parent

QUICK = {"offset.flush.interval.ms": "300", "consumer.auto.offset.reset": "earliest"}


async def main() -> None:
    """Records everything."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with running_broker(folder / "broker") as servers:
            async with admin_client({"bootstrap.servers": servers}, client_id="recorder") as admin:
                await admin.create_topics([NewTopic(topic(case), 1, 1) for case in CASES])
            for case in CASES:
                fill(servers, case)
            worker = await ConnectProcess(folder / "connect", servers, "errors", QUICK).start()
            try:
                for case in CASES:
                    await create(worker, folder, case)
                told = {case.name: await result(worker, servers, folder, case) for case in CASES}
            finally:
                await worker.end()
    (HERE / "errors.json").write_text(one_a_line(told), encoding="utf-8")
    print("errors.json")


def topic(case: Case) -> str:
    """The topic that the case's connector reads."""
    return f"in-{case.name}"


def fill(servers: str, case: Case) -> None:
    """Writes the case's records."""
    producer = Producer({"bootstrap.servers": servers})
    for sent in case.sent:
        producer.produce(topic(case), sent.value, sent.key, headers=sent.headers, partition=0)
        assert producer.flush(30) == 0


async def create(worker: ConnectProcess, folder: Path, case: Case) -> None:
    """Creates the case's connector."""
    config = {"connector.class": "FileStreamSink", "topics": topic(case), "file": str(folder / f"{case.name}.txt")}
    if "errors.tolerance" in case.config:
        config["errors.deadletterqueue.topic.name"] = f"dead-{case.name}"
    answer = await worker.ask("PUT", f"/connectors/{case.name}/config", {**config, **case.config})
    assert answer.status_code in (200, 201), answer.text


async def result(worker: ConnectProcess, servers: str, folder: Path, case: Case) -> dict[str, Any]:
    """The result of a case, once all its records are committed or its task has failed."""

    async def settled() -> Any:
        status = (await worker.ask("GET", f"/connectors/{case.name}/status")).json()
        tasks = status.get("tasks") or [{}]
        if tasks[0].get("state") == "FAILED":
            return tasks[0]
        group = (await worker.ask("GET", f"/connectors/{case.name}/offsets")).json().get("offsets") or [{}]
        read = group[0].get("offset", {}).get("kafka_offset", 0)
        return {"state": "RUNNING"} if read == len(case.sent) else None

    state = await eventually(settled, seconds=400, what=case.name)
    out = folder / f"{case.name}.txt"
    return {
        "state": state["state"],
        "trace": [line for line in state.get("trace", "").splitlines() if not line.startswith("\t")],
        "lines": out.read_text(encoding="utf-8").splitlines() if out.exists() else [],
        "letters": letters(servers, f"dead-{case.name}"),
    }


def letters(servers: str, name: str) -> list[dict[str, Any]]:
    """The records of a topic; of traces their first line."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "look", "auto.offset.reset": "earliest"})
    actual_letters = []
    if name in consumer.list_topics(timeout=20).topics:
        part = TopicPartition(name, 0, 0)
        end = consumer.get_watermark_offsets(part, timeout=20)[1]
        consumer.assign([part])
        while len(actual_letters) < end:
            message = consumer.poll(20)
            assert message is not None
            assert message.error() is None
            actual_letters.append(shown(message.key(), message.value(), message.headers() or ()))
    consumer.close()
    return actual_letters


if __name__ == "__main__":
    asyncio.run(main())
