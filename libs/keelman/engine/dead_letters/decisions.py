"""Decides for replayed dead letters where each is sent, and whether it can be. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from confluent_kafka import Message

from keelman.connect.bad_records.dead_letter import DeadLetter
from keelman.connect.bad_records.replayed import MAX_EXAMPLES, Replayed
from keelman.connect.converters.json_converter import JsonConverter
from keelman.connect.errors import ConnectError, in_one_line
from keelman.connect.failed_record import Format
from keelman.connect.previews.preview import View
from keelman.connect.previews.record_trace import OpenSteps, PreviewedRecord, RecordTrace, StepFailure, opened
from keelman.connect.record import Record
from keelman.connect.schema import OPTIONAL_BYTES
from keelman.engine.dead_letters.reader import kind_of, letter_of, shown
from keelman.engine.reading import time_ms
from keelman.engine.records.registries import open_registry
from keelman.kafka.properties.connector_clients import merged

_SERVERS = "bootstrap.servers"
Outcome = Literal["sent", "failed", "lost", "dropped", "others", "filtered", "before"]
"""failed: still cannot be taken; lost: the letter has not all of its record; before: was replayed before."""
SETTLED: frozenset[Outcome] = frozenset({"sent", "dropped", "others"})


@dataclass(slots=True)
class Fate:
    """The decision on one letter: its outcome, and why it stays where it does."""

    message: Message
    letter: DeadLetter
    outcome: Outcome
    record: PreviewedRecord | None = None
    why: str = ""


@dataclass(slots=True)
class Tally:
    """The counts of a replay, by fate."""

    counts: dict[str, int] = field(default_factory=dict)
    kinds: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    examples: list[View] = field(default_factory=list)

    def add(self, fate: Fate) -> None:
        """Counts one."""
        self.counts[fate.outcome] = self.counts.get(fate.outcome, 0) + 1
        if fate.outcome in ("others", "before"):
            return
        kind = self.kinds.setdefault(kind_of(fate.letter), {})
        kind[fate.outcome] = kind.get(fate.outcome, 0) + 1
        if fate.why and len(self.examples) < MAX_EXAMPLES:
            self.examples.append({**shown(fate.message, fate.letter), "outcome": fate.outcome, "why": fate.why})


class ReplayDecisions:
    """Where letters lead, and whether they can be sent."""

    def __init__(self, request: Mapping[str, Any], open_steps: OpenSteps = RecordTrace) -> None:
        """`open_steps` is the connector's. Raises ConfigValueError, ConnectError."""
        self._config, self._worker = request["config"], request["worker_config"]
        self._sink: bool = request["sink"]
        self._name, self._to = request["name"], request["to"]
        self._stage, self._exception, self._since = request["stage"], request["exception"], request["since_ms"]
        self._walk = open_steps(self._config, self._worker, open_registry)
        self._envelope = JsonConverter({})
        self._partitions: dict[str, int] = {}
        named = [part.strip() for part in self._config.get("topics", "").split(",") if part.strip()]
        self._only = named[0] if len(named) == 1 else ""
        reads, writes = (merged(self._worker, self._config, client) for client in ("consumer", "producer"))
        if self._sink and not self._to and reads.get(_SERVERS) != writes.get(_SERVERS):
            raise ConnectError(
                f"connector {self._name} reads another Kafka cluster than that of its dead letters, so they cannot be "
                "sent back and be marked as sent at once: name a topic of their own cluster for them"
            )

    def know(self, topics: Mapping[str, Any]) -> None:
        """Sets the existing topics, with their partitions. Raises ConnectError if letters must go to a missing
        topic."""
        self._partitions = {name: len(metadata.partitions) for name, metadata in topics.items()}
        if self._to and self._to not in self._partitions:
            raise ConnectError(f"to: no topic {self._to!r}: create it first, or name an existing one")

    def fate(self, message: Message, replayed: Replayed) -> Fate:
        """Decides the fate of a letter."""
        letter = letter_of(message)
        if (message.offset() or 0) in replayed:
            return Fate(message, letter, "before")
        if letter.connector not in (None, self._name):
            return Fate(message, letter, "others")
        if not self._wanted(message, letter):
            return Fate(message, letter, "filtered")
        if letter.record_bytes is not None:
            reason = f"it had no room for its record of {letter.record_bytes} bytes"
            return Fate(message, letter, "lost", why=reason)
        return self._of_sink(message, letter) if self._sink else self._of_source(message, letter)

    def _wanted(self, message: Message, letter: DeadLetter) -> bool:
        stage, exception = kind_of(letter)
        if self._stage and stage != self._stage:
            return False
        if self._exception and self._exception not in (exception, exception.rpartition(".")[2]):
            return False
        return self._since is None or (time_ms(message) or 0) >= self._since

    def _of_sink(self, message: Message, letter: DeadLetter) -> Fate:
        topic = self._to or (letter.whence.topic if letter.whence is not None else self._only)
        if not topic:
            return Fate(message, letter, "lost", why="no header names its topic; name another one")
        if topic not in self._partitions:
            return Fate(message, letter, "failed", why=f"topic {topic} does not exist")
        partition = None
        if letter.whence is not None and not self._to:
            partition = letter.whence.partition
        if partition is not None and partition >= self._partitions[topic]:
            partition = None
        if not self._to:
            try:
                record = Record(topic, partition, timestamp_ms=time_ms(message), offset=message.offset())
                self._walk.through(self._walk.decode(record, letter.key, letter.value, letter.headers))
            except StepFailure as failure:
                return Fate(message, letter, "failed", why=_text_of(failure))
        sent = PreviewedRecord(topic, partition, time_ms(message), letter.key, letter.value, letter.headers)
        return Fate(message, letter, "sent", sent)

    def _of_source(self, message: Message, letter: DeadLetter) -> Fate:
        if letter.whence is None:
            return Fate(message, letter, "lost", why="no header names the topic it was for")
        if "text" in (letter.key_format, letter.value_format):
            return Fate(message, letter, "lost", why="its record could not be stored unchanged, only as text")
        raw = letter.key_format == letter.value_format == "bytes"
        record = Record(letter.whence.topic, letter.target_partition, timestamp_ms=time_ms(message))
        try:
            record.key_schema, record.key = self._read(letter.key, letter.key_format, raw=raw)
            record.value_schema, record.value = self._read(letter.value, letter.value_format, raw=raw)
            after = self._walk.through(self._walk.given(record, letter.headers))
            if after is None:
                return Fate(message, letter, "dropped")
            if after.partition is not None and after.partition >= self._partitions.get(
                after.topic, after.partition + 1
            ):
                after.partition = None
            return Fate(message, letter, "sent", self._walk.written(after, raw=raw))
        except StepFailure as failure:
            return Fate(message, letter, "failed", why=_text_of(failure))
        except ConnectError as error:
            return Fate(message, letter, "lost", why=f"its record cannot be read again: {error}")

    def _read(self, data: bytes | None, form: Format, *, raw: bool) -> tuple[Any, Any]:
        if form == "bytes":
            return (OPTIONAL_BYTES, data) if raw and data is not None else (None, data)
        return opened(self._envelope, data)


def _text_of(failure: StepFailure) -> str:
    return f"{failure.stage} ({failure.step}): {in_one_line(failure.error)}"
