"""Sends dead letters back, each exactly once: records and the replay's progress are committed in one transaction.

A sink's letter goes to the topic that it came from; if its connector's present converters and transforms still
cannot take it, it stays a dead letter. A source's letter passes through its connector's present steps into Kafka.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect.bad_records.replayed import COUNTS, Replayed
from keelman.connect.errors import ConnectError
from keelman.connect.previews.preview import View
from keelman.connect.previews.record_trace import OpenSteps, PreviewedRecord, RecordTrace
from keelman.engine.clients import admin_properties, client_settings, with_token
from keelman.engine.dead_letters.decisions import SETTLED, Fate, ReplayDecisions, Tally
from keelman.engine.dead_letters.reader import ASK_SECONDS, DeadLetterReader, replay_group
from keelman.engine.failure import judge_kafka
from keelman.engine.producing.producer_options import CODECS
from keelman.engine.records.size import NO_LIMIT, Sizes, record_bytes
from keelman.engine.sink.consumer.consumer import CONNECTION
from keelman.engine.topics import ensure_topic, record_sizes
from keelman.kafka.properties.connector_clients import merged

TRANSACTION_SECONDS = 30.0
PRODUCER_KEYS = (*CONNECTION, "compression.type", "max.request.size")


class Sender:
    """Commits sent records together with the replay's progress. Raises KafkaException, ConnectError."""

    def __init__(self, request: Mapping[str, Any], letters: DeadLetterReader) -> None:
        """Fences former replays of the connector."""
        self._config, self._worker = request["config"], request["worker_config"]
        self._letters = letters
        merged_config = merged(self._worker, self._config, "producer")
        properties = {key: value for key, value in merged_config.items() if key.startswith(PRODUCER_KEYS)}
        self._properties = properties
        self._producer = self._open()
        self._met: set[str] = set()
        self._limits: dict[str, Sizes] = {}
        self._codec = CODECS.get(merged_config.get("compression.type", "").strip().lower(), 0)

    def _open(self) -> Producer:
        producer = Producer(
            {
                **with_token(client_settings(self._properties, "producer")),
                "client.id": f"connector-replay-{self._letters.connector}",
                "transactional.id": replay_group(self._letters.connector),
                "transaction.timeout.ms": round(TRANSACTION_SECONDS * 1000),
                "partitioner": "murmur2_random",
            }
        )
        producer.init_transactions(TRANSACTION_SECONDS)
        return producer

    def meet(self, topic: str) -> None:
        """Creates a source's topic if it is missing."""
        if topic not in self._met:
            ensure_topic(topic, self._known, admin_properties(self._worker, self._config), self._worker, self._config)
            self._met.add(topic)

    def _known(self, topic: str) -> int:
        return len(self._producer.list_topics(timeout=ASK_SECONDS).topics.get(topic, _NOTHING).partitions)

    def send(self, fates: list[Fate], marked: Callable[[], Mapping[int, Replayed]]) -> None:
        """Sends all letters in one transaction with the offsets then `marked` as replayed; letters that the brokers
        refuse individually stay dead letters. Raises OverflowError too."""
        for fate in fates:
            if fate.record is not None:
                large = self._limit(fate.record.topic).fault(fate.record.key, fate.record.value, fate.record.headers)
                if large is not None:
                    _stays(fate, f"{large.java_name}: {large}")
        alone: set[int] = set()
        while True:
            refused: dict[int, str] = {}
            offsets = [
                ClientPartition(self._letters.topic, number, mark.begin, mark.text())
                for number, mark in marked().items()
            ]
            self._producer.begin_transaction()
            try:
                self._produce_all(fates, refused, alone)
                if not refused:
                    group = self._letters.consumer.consumer_group_metadata()
                    self._producer.send_offsets_to_transaction(offsets, group, TRANSACTION_SECONDS)
                    self._producer.commit_transaction(TRANSACTION_SECONDS)
                    return
            except KafkaException:
                self._producer.poll(0)
                if not refused:
                    raise
            self._producer.abort_transaction(TRANSACTION_SECONDS)
            # After a refusal the client's producer skips sequence numbers, which brokers refuse: use a new producer.
            self._producer = self._open()
            for index, reason in refused.items():
                if index in alone or len(refused) == 1:
                    _stays(fates[index], reason)
            alone |= refused.keys()  # brokers refuse the whole batch of a bad record

    def _produce_all(self, fates: list[Fate], refused: dict[int, str], alone: set[int]) -> None:
        """Returns once the brokers have all records, or have refused one."""
        held = 0
        for index, fate in enumerate(fates):
            if fate.record is None:
                continue
            size = _bytes(fate.record)
            if held + size > self._limit(fate.record.topic).least or index in alone:  # as one batch they may be refused
                self._producer.flush(TRANSACTION_SECONDS)
                held = 0
            if refused:
                return
            self._produce(index, fate.record, refused)
            held += NO_LIMIT if index in alone else size
        self._producer.flush(TRANSACTION_SECONDS)

    def _limit(self, topic: str) -> Sizes:
        limit = self._limits.get(topic)
        if limit is None:
            admin = admin_properties(self._worker, self._config)
            limit = self._limits[topic] = record_sizes(topic, admin, NO_LIMIT, self._codec)
        return limit

    def _produce(self, index: int, record: PreviewedRecord, refused: dict[int, str]) -> None:
        def delivered(error: Any, _message: Message) -> None:
            if error is None or error.code() == KafkaError._INVALID_DIFFERENT_RECORD:
                return
            if judge_kafka(error) == ("TASK_FAILED", False):
                refused[index] = f"{error.name()}: {error.str()}"

        where = {"partition": record.partition} if record.partition is not None else {}
        when = {"timestamp": record.timestamp_ms} if record.timestamp_ms is not None else {}
        while True:
            try:
                self._producer.produce(
                    record.topic,
                    record.value,
                    record.key,
                    headers=[(name, raw) for name, raw in record.headers],
                    on_delivery=delivered,
                    **where,
                    **when,
                )
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                if judge_kafka(error.args[0])[1]:
                    raise
                refused[index] = f"{error.args[0].name()}: {error.args[0].str()}"
                return
            else:
                return


def _stays(fate: Fate, reason: str) -> None:
    fate.outcome, fate.record, fate.why = "failed", None, reason


def _bytes(record: PreviewedRecord) -> int:
    return record_bytes(record.key, record.value, record.headers)


class _Nothing:
    partitions: Mapping[int, Any] = {}


_NOTHING: Any = _Nothing()


class _Replay:
    """One request. `_at` is the offset of each partition's next letter."""

    def __init__(self, request: Mapping[str, Any], letters: DeadLetterReader, open_steps: OpenSteps) -> None:
        self._request = request
        self._letters = letters
        self._until = time.monotonic() + request["seconds"]
        self._ways = ReplayDecisions(request, open_steps)
        self._ways.know(letters.consumer.list_topics(timeout=ASK_SECONDS).topics)
        self._sender = None if request["dry_run"] or not letters.ends else Sender(request, letters)
        letters.look_again()
        self._tally = Tally()
        cursor = request["cursor"] or {}
        went = cursor.get("at", {})
        self._at = {n: max(mark.begin, went.get(str(n), 0)) for n, mark in letters.replayed.items()}
        for number, end in cursor.get("ends", {}).items():
            letters.ends[int(number)] = min(end, letters.ends.get(int(number), 0))

    def run(self) -> View:
        """Decides letter after letter, and returns a summary."""
        sent, most = 0, self._request["most"]
        for batch in self._letters.batches(self._at, self._until):
            rest = deque(batch)
            while rest and sent < most and time.monotonic() < self._until:
                fates = self._next(rest, most - sent)
                self._settle(fates)
                sent += sum(fate.outcome == "sent" for fate in fates)
            if sent == most:
                break
        return self._summary()

    def _next(self, rest: deque[Message], most: int) -> list[Fate]:
        """Decides letters until `most` of them will be sent; the brokers may refuse some of them."""
        fates: list[Fate] = []
        while rest and most:
            message = rest.popleft()
            fates.append(self._ways.fate(message, self._letters.replayed[message.partition() or 0]))
            most -= fates[-1].outcome == "sent"
        return fates

    def _settle(self, fates: list[Fate]) -> None:
        if self._sender is not None and fates:
            for fate in fates:
                if fate.record is not None and not self._request["sink"]:
                    self._sender.meet(fate.record.topic)
            try:
                self._sender.send(fates, lambda: self._marked(fates))
            except OverflowError:
                raise ConnectError(
                    f"too many dead letters of connector {self._letters.connector} that stay lie between those that "
                    "were sent, to keep which ones: replay without a filter, once what makes them fail is mended"
                ) from None
            self._letters.replayed.update(self._marked(fates))
        for fate in fates:
            self._tally.add(fate)
            self._at[fate.message.partition() or 0] = (fate.message.offset() or 0) + 1

    def _marked(self, fates: list[Fate]) -> dict[int, Replayed]:
        """Returns the replayed offsets after these letters. Offsets without records, such as markers, count too."""
        marks: dict[int, Replayed] = {}
        at = dict(self._at)
        for fate in fates:
            number, offset = fate.message.partition() or 0, fate.message.offset() or 0
            if number not in marks:
                marks[number] = self._letters.replayed[number].copy()
            marks[number].add(at[number], offset + 1 if fate.outcome in SETTLED else offset)
            at[number] = offset + 1
        return marks

    def _summary(self) -> View:
        letters, tally = self._letters, self._tally
        unread = any(self._at[number] < end for number, end in letters.ends.items())
        cursor = {
            "at": {str(number): offset for number, offset in self._at.items()},
            "ends": {str(number): end for number, end in letters.ends.items()},
        }
        return {
            "connector": letters.connector,
            "topic": letters.topic,
            "dry_run": self._request["dry_run"],
            **{count: tally.counts.get(count, 0) for count in COUNTS},
            "kinds": [
                {"stage": stage, "exception": exception, **counts} for (stage, exception), counts in tally.kinds.items()
            ],
            "examples": tally.examples,
            "cursor": cursor if unread and time.monotonic() >= self._until else None,
        }


def replay(request: Mapping[str, Any], open_steps: OpenSteps = RecordTrace) -> View:
    """Replays for at most `seconds`; the result's `cursor` is the place to continue, None when all letters are done.

    `open_steps` makes the connector's converters and transforms. Beside the fields of `DeadLetterReader` `request` has
    `sink`, `to`, `stage`, `exception`, `since_ms`, `most`, `dry_run` and the `cursor` of the previous call. Raises
    ConnectError, KafkaException.
    """
    letters = DeadLetterReader(request)
    try:
        return _Replay(request, letters, open_steps).run()
    except KafkaException as error:
        if judge_kafka(error.args[0])[0] == "FENCED":
            raise ConnectError(
                f"another replay of connector {letters.connector} has started, and continues alone"
            ) from error
        raise
    finally:
        letters.close()
