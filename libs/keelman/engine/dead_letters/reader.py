"""Reads a connector's dead letter topic, and knows which letters were replayed; commits and writes nothing."""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect.bad_records.dead_letter import DeadLetter, Why, read_letter
from keelman.connect.bad_records.replayed import Replayed
from keelman.connect.config.connector_keys import DEAD_LETTERS
from keelman.connect.errors import ConnectError, SerializationError
from keelman.connect.previews.preview import View, payload
from keelman.engine.clients import client_settings, with_token
from keelman.engine.reading import Place, read_to, time_ms
from keelman.engine.sink.consumer.consumer import CONNECTION
from keelman.kafka.properties.connector_clients import merged
from keelman.kafka.security.oauth import ALLOWED_KEY, allow_urls

ASK_SECONDS = 10.0
MAX_SURVEYED = 100_000
"""The most letters surveyed of a partition: the newest ones."""
_BYTES = re.compile(rf"^Caused by: {re.escape(SerializationError.java_name)}: (.+)$", re.MULTILINE)


def replay_group(connector: str) -> str:
    """Returns the consumer group whose offsets show which letters were replayed; also the replay's transactional id."""
    return f"keelman-replay-{connector}"


class DeadLetterReader:
    """The letters in a topic at this moment. Used by one thread; `close` must be called."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        """`request` has `name`, `config` (resolved) and `worker_config`. Raises ConnectError, KafkaException."""
        self.connector, config, worker = request["name"], request["config"], request["worker_config"]
        self.topic = config.get(DEAD_LETTERS, "").strip()
        if not self.topic:
            raise ConnectError(f"connector {self.connector} keeps no dead letters: {DEAD_LETTERS} is not set")
        allow_urls(worker.get(ALLOWED_KEY, ""))
        merged_config = merged(worker, config, "producer")
        properties = {key: value for key, value in merged_config.items() if key.startswith(CONNECTION)}
        self.consumer = Consumer(
            {
                **with_token(client_settings(properties, "consumer")),
                "group.id": replay_group(self.connector),
                "client.id": f"connector-letters-{self.connector}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "queued.max.messages.kbytes": 16_384,
            }
        )
        self.ends: dict[int, int] = {}
        self.begins: dict[int, int] = {}
        self.replayed: dict[int, Replayed] = {}
        self.left: dict[Place, int] = {}
        """The partitions whose ends `batches` has not reached."""
        try:
            self._look()
        except BaseException:
            self.consumer.close()
            raise

    def _look(self) -> None:
        topics = self.consumer.list_topics(timeout=ASK_SECONDS).topics
        if self.topic not in topics:
            return
        parts = [ClientPartition(self.topic, number) for number in topics[self.topic].partitions]
        for part in parts:
            self.begins[part.partition], self.ends[part.partition] = self.consumer.get_watermark_offsets(
                part, ASK_SECONDS
            )

    def look_again(self) -> None:
        """Learns which letters are replayed; call it after former replays are fenced, so that they can add none."""
        parts = [ClientPartition(self.topic, number) for number in self.ends]
        for committed in self.consumer.committed(parts, ASK_SECONDS) if parts else ():
            if committed.error is not None:
                raise KafkaException(committed.error)
            begin = committed.offset if committed.offset >= 0 else self.begins[committed.partition]
            self.replayed[committed.partition] = Replayed.read(begin, committed.metadata)

    def batches(self, starts: Mapping[int, int], until: float) -> Iterator[list[Message]]:
        """Yields the letters from these offsets to the ends, until all are read or `until` is reached."""
        self.left = {(self.topic, number): end for number, end in self.ends.items()}
        return read_to(self.consumer, {(self.topic, n): at for n, at in starts.items()}, self.left, until)

    def close(self) -> None:
        """Closes the consumer."""
        self.consumer.close()


def letter_of(message: Message) -> DeadLetter:
    """Returns the dead letter of a message of the topic."""
    return read_letter(message.key(), message.value(), message.headers())


def kind_of(letter: DeadLetter) -> tuple[str, str]:
    """Returns stage and exception of a letter, by which letters are counted."""
    return ("", "") if letter.why is None else (letter.why.stage, letter.why.exception)


def shown(message: Message, letter: DeadLetter) -> View:
    """Returns a letter's view for people."""
    reason, whence = letter.why, letter.whence
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp_ms": time_ms(message),
        "connector": letter.connector,
        "task": letter.task,
        "stage": None if reason is None else reason.stage,
        "class": None if reason is None else reason.class_name,
        "exception": None if reason is None else reason.exception,
        "message": None if reason is None else _message(reason),
        "origin": None
        if whence is None
        else {
            "topic": whence.topic,
            "partition": whence.partition,
            "offset": whence.offset,
            "source_partition": whence.source_partition,
            "source_offset": whence.source_offset,
        },
        "key": payload(letter.key),
        "value": payload(letter.value),
        "headers": [{"name": name, "value": payload(raw)} for name, raw in letter.headers],
    }


def _message(reason: Why) -> str | None:
    if reason.message is None or not reason.message.endswith(": "):
        return reason.message
    cause = _BYTES.search(reason.trace)  # Connect's message ends before the fault of the bytes
    return reason.message if cause is None else reason.message + cause[1]


def survey(request: Mapping[str, Any]) -> View:
    """Returns the number of letters of each kind, and the newest few (`records`); `complete` is false if the
    numbers cover only some letters. Beside the fields of `DeadLetterReader` `request` has `records` and `seconds`.
    Raises ConnectError, KafkaException."""
    letters = DeadLetterReader(request)
    counts: Counter[tuple[str, str]] = Counter()
    waiting = others = 0
    newest: deque[tuple[Message, DeadLetter]] = deque(maxlen=request["records"])
    starts = {number: max(letters.begins[number], end - MAX_SURVEYED) for number, end in letters.ends.items()}
    try:
        letters.look_again()
        for batch in letters.batches(starts, time.monotonic() + request["seconds"]):
            for message in batch:
                number, offset = message.partition() or 0, message.offset() or 0
                letter = letter_of(message)
                if letter.connector not in (None, letters.connector):
                    others += 1
                    continue
                counts[kind_of(letter)] += 1
                waiting += offset not in letters.replayed[number]
                newest.append((message, letter))
    finally:
        letters.close()
    return {
        "connector": letters.connector,
        "topic": letters.topic,
        "letters": counts.total(),
        "waiting": waiting,
        "complete": not letters.left and starts == letters.begins,
        "of_other_connectors": others,
        "kinds": [
            {"stage": stage, "exception": exception, "letters": n} for (stage, exception), n in counts.most_common()
        ],
        "newest": [
            {
                **shown(message, letter),
                "replayed": (message.offset() or 0) in letters.replayed[message.partition() or 0],
            }
            for message, letter in reversed(newest)
        ],
    }
