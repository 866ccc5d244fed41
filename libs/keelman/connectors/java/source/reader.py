"""Reads a Java source task: its polls become record batches, or payloads, committed with the task's own offsets.

One thread polls, another converts and sends, so that the two overlap.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import randrange
from typing import Any, Literal

from keelman.connect import contract
from keelman.connect.errors import ConnectError
from keelman.connect.offsets import parse_key
from keelman.connect.plugin import Reader
from keelman.connect.records import Column, PackedRecords, Partition, SourceBatch
from keelman.connect.registry.dry import DryRegistry
from keelman.connect.registry.interface import OpenRegistry
from keelman.connect.tasks.own_metric import OwnMetric
from keelman.connect.tasks.source_task import SourceTask
from keelman.connectors.java.configs import string_map, task_state
from keelman.connectors.java.errors import task_error, translated
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.connectors.java.plugin_metrics import PluginMetrics
from keelman.connectors.java.source.loops import SourceLoops, TaskLoops, compression, entry_of
from keelman.connectors.java.source.notices import CommittedBatch
from keelman.connectors.java.source.offsets import TaskOffsets
from keelman.connectors.java.source.one_by_one import OneByOne
from keelman.connectors.java.source.poll_thread import Poll, PollThread
from keelman.connectors.java.steps.record_steps import RecordSteps, record_steps
from keelman.connectors.java.steps.record_views import RecordViews
from keelman.connectors.java.stopping import flush_seconds, stop_seconds
from keelman.engine.control import CutShort
from keelman.engine.own_metrics import reported
from keelman.engine.records.conversion import attended
from keelman.engine.records.registries import open_registry
from keelman.engine.source.boundary import boundary_for

RUNTIME = "org.apache.kafka.connect.runtime"
PIECE_BYTES = 800_000
GUESSED_BYTES = 400.0
SMALL_POLL = 512
FOLLOWING_SECONDS = 0.005
IDLE_SECONDS = 0.2
ACTS: Mapping[str, Literal["commit", "abort"]] = {"c": "commit", "a": "abort"}


def open_reader(loader: PluginLoader, class_name: str, config: Mapping[str, str], task: SourceTask) -> JavaReader:
    """Returns the reader of one Java source task. `class_name` is the task's class, `config` the connector's keys and
    the task's. Raises what the task's start raises."""
    metrics = PluginMetrics({"connector": task.connector, "task": str(task.task)})
    steps = record_steps(loader, config, task.worker, _registries(task), metrics)
    return JavaReader(loader, class_name, steps, config, task)


class JavaReader(Reader):
    """The reader of one Java task. Its queue is short, so that limits on its batches also limit its polls."""

    lag_unit = "records"

    def __init__(
        self, loader: PluginLoader, class_name: str, steps: RecordSteps, config: Mapping[str, str], task: SourceTask
    ) -> None:
        """Starts the task. Raises what the task's start raises."""
        self._task, self._loader, self._steps = task, loader, steps
        self._alone = config.get("tasks.max", "1").strip() == "1"
        self._offsets = TaskOffsets(task.committed)
        transactions = None
        if task.exactly_once and config.get("transaction.boundary", "").strip().lower() == "connector":
            transactions = java_class(f"{RUNTIME}.WorkerTransactionContext")()
        context = _task_context(task, steps.metrics, self._offsets.reader, transactions)
        self._loops = SourceLoops(steps)
        self._one_by_one = OneByOne(steps, task.target)
        self._views = RecordViews()
        self._poll: Poll | None = None
        self._at = 0
        self._ready: deque[SourceBatch] = deque()
        self._handed: list[CommittedBatch] = []
        self._uncommitted = False
        self._error_deferred = self._aborted = False
        self._stop_seconds = stop_seconds(task.worker)
        self._wound_up_by = 0.0
        self._record_bytes = GUESSED_BYTES
        self._compression: tuple[int | None, Any] = (None, compression(None))
        self._sticky: dict[str, int] = {}
        with loader.entered():
            java_task = loader.load(class_name)()
        self._task_loops = TaskLoops(java_task, self._offsets.writer, transactions)
        options = string_map(task.config)

        def begin() -> None:
            java_task.initialize(context)
            java_task.start(options)

        self._thread = PollThread(
            loader,
            java_task,
            begin=begin,
            loops=self._task_loops,
            transactions=transactions,
            exactly_once=task.exactly_once,
            commit_seconds=_commit_seconds(config, task.worker),
            flush_seconds=math.inf if task.dry else flush_seconds(task.worker),
            failed=task_error,
            connector=task.connector,
            number=task.task,
        )
        try:
            self._thread.await_start(task.beat)
        except BaseException:
            self.close()
            raise

    def partitions(self) -> Sequence[Partition]:
        """Returns the partitions that the task looked up, if no other task can have them."""
        keys = [parse_key(key) for key in self._offsets.asked] if self._alone else []
        return [key[1] for key in keys if key is not None]

    def read(self) -> SourceBatch | None:
        """Returns records of the last poll, else of the next one. Raises ConnectError, and what its target raises."""
        while not self._ready:
            if self._poll is None:
                self._poll, self._at = self._next_poll(), 0
                if self._poll is None:
                    return None
            with self._loader.entered(), translated():
                self._ready.extend(self._piece(self._poll))
        self._uncommitted = True
        return self._ready.popleft()

    def glance(self) -> bool | None:
        """Returns whether a poll waits."""
        return bool(self._ready) or self._poll is not None or self._thread.waiting

    def waits_for(self) -> str:
        """Returns a text about a call into the task that does not return."""
        return self._thread.hangs()

    def metrics(self) -> Sequence[OwnMetric]:
        """Returns the metrics of the task and of its steps."""
        with self._loader.entered(), contract.standing(f"{self._thread.class_name}.pluginMetrics"):
            return reported(self._steps.metrics.found())

    def wind_up(self) -> bool:
        """Ends polling. Polled records are still copied, for some sources have them nowhere else. Returns whether there
        are more."""
        self._wound_up_by = self._wound_up_by or time.monotonic() + self._stop_seconds
        more = self._thread.poll_no_more() and time.monotonic() < self._wound_up_by
        return more or bool(self._ready) or self._poll is not None

    def committed(self) -> None:
        """Notifies the task, as Connect does first of records without a target. After a transaction that the task
        aborted only of those: its other records may never have reached a broker."""
        handed, self._handed = self._handed, []
        sent, nowhere = [batch for batch in handed if batch.topic], [batch for batch in handed if not batch.topic]
        handed, self._aborted = nowhere if self._aborted else nowhere + sent, False
        if self._uncommitted:
            self._uncommitted = False
            self._thread.committed(handed)

    def close(self) -> None:
        """Stops the task, and returns once it has stopped: a task that does not react must not stay in the slot."""

        def beat() -> None:
            with suppress(CutShort):  # the run is ending already
                self._task.beat()

        try:
            self._thread.stop(self._stop_seconds, beat)
        finally:
            self._offsets.close()
            self._steps.metrics.close()

    def _next_poll(self) -> Poll | None:
        poll = self._thread.poll(FOLLOWING_SECONDS if self._uncommitted else IDLE_SECONDS)
        if poll is None and self._thread.error is not None:
            if self._error_deferred or not self._uncommitted:
                raise self._thread.error
            self._error_deferred = True  # earlier polls are committed first
        return poll

    def _piece(self, poll: Poll) -> list[SourceBatch]:
        """Returns the next records of a poll: a batch for each topic. A poll's records are committed together, with its
        offsets after the last record, or up to where its task ends a transaction."""
        begin, end = self._at, self._end_of_piece(poll)
        self._at = end
        last = end >= poll.count
        if last:
            self._poll = None
        act = poll.act if last else ""
        if poll.acts and end > begin and poll.acts[end - 1] != ".":
            act = poll.acts[end - 1]  # the empty transaction behind it need not be ended
        records = poll.records if begin == 0 and last else poll.records.subList(begin, end)
        batches = list(self._batches(records)) if end > begin else []
        if not batches:
            batches = [_empty()]
        if end > begin:
            self._task_loops.note_offsets(records)
        for batch in batches:
            batch.more = True
        behind = batches[-1]
        behind.more = not (last or act)
        if not behind.more:
            behind.raw_offsets = self._offsets.flush()
        behind.boundary = ACTS.get(act)
        self._aborted = act == "a"
        behind.short = last and self._is_due(poll)
        return batches

    def _is_due(self, poll: Poll) -> bool:
        """Returns whether to commit a poll without waiting for more: its task waits for that, or returned little."""
        return self._thread.in_step or (poll.count < SMALL_POLL and not self._thread.waiting)

    def _end_of_piece(self, poll: Poll) -> int:
        most = max(1, int(PIECE_BYTES / self._record_bytes))
        if self.most_records is not None:
            most = min(most, max(1, self.most_records))
        end = min(poll.count, self._at + most)
        if poll.acts:
            ends = [at for act in "ca" if (at := poll.acts.find(act, self._at, end)) >= 0]
            end = min([end, *(at + 1 for at in ends)])
        return end

    def _batches(self, records: Any) -> Iterator[SourceBatch]:
        """Converts records to batches: packed where possible, else one by one. Drops the callbacks of a failed packing.
        In a preview the records stay unchanged."""
        if self._task.dry:
            read = [self._views.of(record) for record in records]
            yield SourceBatch(read[0].topic, Column([None] * len(read)), raw=True, read=read)
            return
        if self.packs:
            handed = len(self._handed)
            try:
                yield from self._packed(records)
            except (jpype().JException, _NotTogether):
                del self._handed[handed:]
            else:
                return
        yield from self._one_by_one.batches(records, self)

    def _packed(self, records: Any) -> list[SourceBatch]:
        now_ms, size, count = int(time.time() * 1000), 0, 0
        batches = []
        try:
            topics = self._loops.converted(records)
        except ConnectError as error:
            raise _NotTogether from error
        for topic, entries in topics.items():
            if topic is None:
                self._note(CommittedBatch(entries))
                continue
            batch = SourceBatch(topic, Column([]), raw=True)
            packed: list[PackedRecords] = []
            calls: dict[int, Callable[[int, int], None]] = {}
            for partition, group in self._by_partition(topic, entries):
                for data, some, number in self._in_batches(topic, group, now_ms):
                    if self._task_loops.wants_records:
                        calls[len(packed)] = self._place_of(
                            CommittedBatch(some, topic, partition, None, now_ms), number
                        )
                    packed.append(PackedRecords(data, partition, number))
                    size, count = size + len(data), count + number
            batch.packed, batch.delivered, batch.passed = packed, calls or None, 0
            batches.append(batch)
        if count:
            self._record_bytes = self._thread.record_bytes = 0.5 * self._record_bytes + 0.5 * size / count
        return batches

    def _by_partition(self, topic: str, entries: Any) -> Iterator[tuple[int, Any]]:
        among = self._task.target.partitions(topic)
        for partition, group in self._loops.by_partition(entries, among).items():
            if partition is not None:
                yield partition, group
                continue
            # As Java's producer: all to one partition until a batch has gone out to it.
            self._sticky[topic] = (self._sticky.get(topic, randrange(among)) + 1) % among
            yield self._sticky[topic], group

    def _in_batches(self, topic: str, entries: Any, now_ms: int) -> Iterator[tuple[bytes, Any, int]]:
        """Yields entries as batches within the size limit, each with its entries and their number."""
        most = self._task.target.batch_bytes(topic)
        number = int(entries.size())
        data = self._loops.packed(entries, self._compressor(), now_ms)
        if len(data) <= most:
            yield data, entries, number
            return
        if number == 1:
            raise _NotTogether
        for begin, end in ((0, number // 2), (number // 2, number)):
            yield from self._in_batches(topic, entries.subList(begin, end), now_ms)

    def _compressor(self) -> Any:
        if self._compression[0] != self.codec:
            self._compression = self.codec, compression(self.codec)
        return self._compression[1]

    def note_lost(self, record: Any) -> None:
        """Notes a record without a target, when records are converted one by one."""
        if self._task_loops.wants_records:
            self._note(CommittedBatch(entry_of(record)))

    def note_sent(self, record: Any) -> Callable[[int, int], None] | None:
        """Notes a record that goes to a topic, when records are converted one by one. Returns the callback for it."""
        if not self._task_loops.wants_records:
            return None
        return self._place_of(
            CommittedBatch(entry_of(record), str(record.topic()), 0, None, int(time.time() * 1000)), 1
        )

    def _note(self, entries: CommittedBatch) -> int:
        """Keeps entries for the task's notification after their commit. Returns their place in the list."""
        if self._task_loops.wants_records:
            self._handed.append(entries)
        return len(self._handed) - 1

    def _place_of(self, entries: CommittedBatch, number: int) -> Callable[[int, int], None]:
        return partial(self._delivered, self._note(entries), number)

    def _delivered(self, at: int, number: int, partition: int, last: int) -> None:
        handed = self._handed[at]
        self._handed[at] = CommittedBatch(handed.entries, handed.topic, partition, last - number + 1, handed.now_ms)


class _NotTogether(Exception):
    """A record is larger than a batch may be, or our converter cannot take it: convert the records one by one."""


def _registries(task: SourceTask) -> OpenRegistry:
    """Opens schema registries for the task's converters: a preview only reads them."""
    opened = attended(open_registry, task.beat)
    return (lambda config: DryRegistry(opened(config), [])) if task.dry else opened


def _commit_seconds(config: Mapping[str, str], worker: Mapping[str, str]) -> float:
    """Returns the seconds between commits of a transactional task without records: its boundary's interval."""
    boundary = boundary_for(config, worker, time.monotonic, transactional=True)
    return {"poll": 0.0, "connector": math.inf}.get(boundary.kind, boundary.seconds)


def _empty() -> SourceBatch:
    """Returns a batch without records, for offsets alone and for the end of a transaction."""
    return SourceBatch("", Column([]), raw=True, passed=0)


def _task_context(task: SourceTask, metrics: PluginMetrics, offsets: Any, transactions: Any) -> Any:
    """Returns Connect's SourceTaskContext of a task, a Java object. `offsets` is Connect's OffsetStorageReader,
    `transactions` its WorkerTransactionContext, None unless the connector defines its boundaries."""
    whose, state = task_state(task.connector, task.task, string_map(task.config))
    boundaries = jpype().JObject(transactions, java_class(f"{RUNTIME}.WorkerTransactionContext"))
    return java_class(f"{RUNTIME}.WorkerSourceTaskContext")(offsets, whose, state, boundaries, metrics.java)
