"""What a source's loop commits, aborts and gives back, recorded by a producer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from keelman.api.copy.v1.copy_run_pb2 import LAG_UNIT_RECORDS
from keelman.connect.offsets import CommittedOffsets
from keelman.connect.plugin import Reader
from keelman.connect.records import Column, Offset, Partition, RawOffset, SourceBatch
from keelman.engine.control import Control, GaveUp
from keelman.engine.failure import TopicRefused
from keelman.engine.idle import Idle
from keelman.engine.own_metrics import OwnMetrics
from keelman.engine.producing.producer import OffsetRecord
from keelman.engine.producing.transactions import TransactionalProducer
from keelman.engine.progress import Progress
from keelman.engine.reporter import RunReporter
from keelman.engine.source.boundary import Boundary
from keelman.engine.source.commits import SourceCommits
from keelman.engine.source.loop import SourceLoop
from keelman.engine.source.read_position import ReadPosition
from keelman.engine.source.reports import SourceReports
from support.copying.orders import DRAIN

FILE: Partition = {"f": "f"}


class ListReader(Reader):
    """Returns these batches, then is finished and drains the run."""

    def __init__(self, batches: list[SourceBatch], control: Control) -> None:
        self.batches, self._control = batches, control
        self.commits = 0

    def read(self) -> SourceBatch | None:
        if not self.batches:
            self._control.apply(DRAIN)
            return None
        return self.batches.pop(0)

    def finished(self) -> bool:
        return not self.batches

    def committed(self) -> None:
        self.commits += 1

    def partitions(self) -> Sequence[Partition]:
        return [FILE]


class KeptProducer(TransactionalProducer):
    """A producer that records its commits instead of sending them."""

    def __init__(self) -> None:
        self.ends: list[Any] = []

    @property
    def full(self) -> bool:
        return False

    @property
    def read_bytes(self) -> int | None:
        return None

    def commit(self, offset_topic: str, offsets: Sequence[OffsetRecord]) -> None:
        self.ends.append([value for _, value in offsets])
        self.committed = True

    def abandon(self) -> None:
        self.ends.append("aborted")

    def let_out(self, seconds: float) -> None:
        pass


class SendingPipeline:
    """Sends each batch except the one with this number, which waits until the run is drained."""

    topics = ("t",)

    def __init__(self, control: Control, gives_up_at: int | None = None) -> None:
        self._control, self._gives_up_at, self.sent = control, gives_up_at, 0

    def prepare(self, batch: SourceBatch) -> list[Any]:
        if batch.topic == "refused":
            raise TopicRefused("its name is too long")
        if self.sent == self._gives_up_at:
            self._control.apply(DRAIN)
            raise GaveUp
        return []

    def send(self, _batch: SourceBatch, _prepared: list[Any]) -> tuple[int, int]:
        self.sent += 1
        return 1, 1


def batch(number: int, boundary: Any = None) -> SourceBatch:
    """A batch of one record, whose number is the offset after it."""
    offset: Offset = {"p": number}
    return SourceBatch("t", Column([number]), offsets=((FILE, offset),), boundary=boundary)


class World:
    """A loop with its arguments."""

    def __init__(self, batches: list[SourceBatch], kind: str, *, gives_up_at: int | None = None) -> None:
        self.control, self.producer = Control(), KeptProducer()
        self.reader = ListReader(batches, self.control)
        self.progress, self.idle = Progress(), Idle(None)
        boundary, position = Boundary(kind, 3600.0, time.monotonic), ReadPosition(self.reader)
        record = CommittedOffsets("c", []).record(FILE, {"p": 0})
        self.commits = SourceCommits(
            "offsets",
            reader=self.reader,
            producer=self.producer,
            committed=CommittedOffsets("c", [record]),
            boundary=boundary,
            position=position,
            progress=self.progress,
        )
        self.updates: list[Any] = []
        reporter = RunReporter("r", self.updates.append)
        pipeline: Any = SendingPipeline(self.control, gives_up_at)
        self.loop = SourceLoop(
            self.control,
            reporter,
            reader=self.reader,
            pipeline=pipeline,
            producer=self.producer,
            boundary=boundary,
            position=position,
            commits=self.commits,
            reports=SourceReports(
                reporter,
                reader=self.reader,
                position=position,
                progress=self.progress,
                idle=self.idle,
                metrics=OwnMetrics(self.reader.metrics),
            ),
            idle=self.idle,
        )


def test_a_drained_source_commits_what_was_before_the_batch_that_it_gave_up() -> None:
    world = World([batch(1), batch(2)], "interval", gives_up_at=1)
    world.loop.run()
    assert world.producer.ends == [[b'{"p":1}']]
    assert world.reader.commits == 0, "it would take the batch that was given up for committed, too"
    assert not world.commits.finished


def test_what_a_connector_leaves_open_is_aborted_at_the_end() -> None:
    world = World([batch(1, "commit"), batch(2)], "connector", gives_up_at=2)
    world.reader.batches.append(batch(3))
    world.loop.run()
    assert world.producer.ends == [[b'{"p":1}'], "aborted"]
    assert world.commits.pending


def test_offsets_of_a_transaction_that_its_connector_aborts_are_committed() -> None:
    world = World([batch(1), batch(2, "abort"), batch(3, "commit")], "connector")
    world.loop.run()
    assert world.producer.ends == ["aborted", [b'{"p":2}'], [b'{"p":3}']]
    assert world.progress.message(0, LAG_UNIT_RECORDS).records == 1
    assert world.commits.finished


def test_what_must_be_committed_together_is_and_a_drain_waits_for_the_rest_of_it() -> None:
    first, second = batch(1), batch(2)
    first.more, first.offsets, first.short, second.short = True, (), True, True
    world = World([first, second], "poll")
    world.loop.run()
    assert world.producer.ends == [[b'{"p":2}']]
    first.more = True
    world = World([first, second], "poll", gives_up_at=1)
    world.loop.run()
    assert world.producer.ends == ["aborted"]


def test_limits_are_not_waited_for_in_the_middle_of_what_must_be_committed_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = batch(1), batch(2)
    first.more, second.short = True, True
    world = World([first, second, batch(3)], "poll")
    world.control.pace.limit(5, 0)
    torn: list[bool] = []
    monkeypatch.setattr(world.control, "wait", lambda _seconds: torn.append(world.commits.torn))
    world.loop.run()
    assert set(torn) == {False}
    assert world.producer.ends == [[b'{"p":2}'], [b'{"p":3}']]


def test_what_a_reader_holds_when_its_run_is_drained_is_copied_first() -> None:
    world = World([batch(1), batch(2), batch(3)], "poll")
    world.reader.wind_up = lambda: len(world.reader.batches) > 1  # type: ignore[method-assign]
    world.control.apply(DRAIN)
    world.loop.run()
    assert world.producer.ends == [[b'{"p":2}']]
    assert world.reader.batches == [batch(3)]


def test_offsets_that_are_bytes_already_are_committed_as_they_are() -> None:
    raw = RawOffset(b'["c",{"f":"f"}]', b'{"p" : 1.0E2}')
    world = World([SourceBatch("t", Column([1]), raw_offsets=[raw]), SourceBatch("t", Column([2]))], "poll")
    world.loop.run()
    assert world.producer.ends == [[b'{"p" : 1.0E2}']]
    assert world.commits.committed.raw_value(raw.key) == raw.value
    assert world.commits.committed.offset(FILE) == {"p": 100.0}


@pytest.mark.parametrize(("kind", "ends"), [("poll", [[b'{"p":5}']]), ("interval", [[b'{"p":0}'], [b'{"p":5}']])])
def test_committed_offsets_are_written_again(kind: str, ends: list[Any]) -> None:
    world = World([batch(5)], kind)
    world.commits.write_again()
    world.loop.run()
    assert world.producer.ends == ends


@pytest.mark.parametrize("kind", ["poll", "interval"])
def test_a_topic_that_is_refused_is_the_readers_to_set_aside(kind: str) -> None:
    other: Partition = {"f": "other"}
    refused = SourceBatch("refused", Column([1]), offsets=((other, {"p": 9}),), short=True)
    messages: list[str] = []
    world = World([batch(1), refused, batch(2)], kind)
    world.reader.set_aside = lambda reason: messages.append(reason) or True  # type: ignore[func-returns-value, method-assign]
    world.loop.run()
    assert messages == ["its name is too long"]
    assert world.producer.ends[-1] == [b'{"p":2}']
    assert all(b'{"p":9}' not in end for end in world.producer.ends), "nothing of it is passed over"
    assert world.progress.message(0, LAG_UNIT_RECORDS).records == 2
    with pytest.raises(TopicRefused):
        World([batch(1), refused], kind).loop.run()
