"""Records for Java sinks, and the delay of a database's changes, each identified by the time of its making."""

from __future__ import annotations

import json
import threading
import time
import uuid

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.measuring.data import QUIET
from support.java.numbered_rows import TABLE, NumberedRows

AT_ONCE = 10
LATE_SECONDS = 60.0
WARM_UP_SECONDS = 1.0


def fill_upserts(bootstrap: str, topic: str, count: int) -> None:
    """Writes rows with their schema, as JsonConverter reads them. Raises AssertionError unless all were accepted."""
    number, words = {"type": "int32", "optional": False}, {"type": "string", "optional": False}
    key = {"type": "struct", "name": "row.Key", "optional": False, "fields": [{**number, "field": "id"}]}
    fields = [{**number, "field": "id"}, {**number, "field": "version"}, {**words, "field": "words"}]
    value = {"type": "struct", "name": "row.Value", "optional": False, "fields": fields}
    head, tail = (f'{{"schema":{json.dumps(item)},"payload":' for item in (key, value))
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 1_000_000, **QUIET})
    for n in range(count):
        payload = json.dumps({"id": n, "version": 0, "words": f"row {n} of a table that a sink writes"})
        producer.produce(topic, key=f'{head}{{"id":{n}}}}}', value=f"{tail}{payload}}}")
        if not n % 5000:
            producer.flush(60)
    assert not producer.flush(120), f"not all of {count} records reached {topic}"


def latencies(bootstrap: str, topic: str, rows: NumberedRows, seconds: float, per_second: int) -> list[float]:
    """Milliseconds from making each change until a reader of committed records sees it, in that order.

    Those of the first second do not count. Raises AssertionError when some do not come.
    """
    ended = threading.Event()
    took: list[float] = []
    level = {"isolation.level": "read_committed", "fetch.wait.max.ms": 500, "fetch.queue.backoff.ms": 1}
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": f"late-{uuid.uuid4()}", **level, **QUIET})
    reader.assign([TopicPartition(topic, 0, 0)])

    def read() -> None:
        while not ended.is_set():
            for message in reader.consume(1000, 0.02):
                if message.error() is None:
                    document = json.loads(message.value() or b"{}")
                    new_float = float(document.get("payload", document)["after"]["words"])
                    took.append((time.time() - new_float) * 1000)

    thread = threading.Thread(target=read)
    thread.start()
    expected_int = int((seconds + WARM_UP_SECONDS) * per_second)
    try:
        with rows.connected() as connection:
            begun = time.monotonic()
            for n in range(0, expected_int, AT_ONCE):
                ended.wait(max(0.0, begun + n / per_second - time.monotonic()))
                update = f"UPDATE {TABLE} SET version = version + 1, words = %s WHERE id >= %s AND id < %s"
                first = n % per_second
                connection.execute(update, (repr(time.time()), first, first + AT_ONCE))
        deadline = time.monotonic() + LATE_SECONDS
        while len(took) < expected_int:
            assert time.monotonic() < deadline, f"{len(took)} of {expected_int} changes arrived"
            ended.wait(0.05)
    finally:
        ended.set()
        thread.join()
        reader.close()
    return took[int(WARM_UP_SECONDS * per_second) :]
