"""Follows a sink's assignment: partitions that its group assigns or revokes, and positions that its log has lost."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect import contract
from keelman.connect.plugin import Writer
from keelman.connect.records import TopicPartition
from keelman.engine.clients import partition_of
from keelman.engine.control import GaveUp
from keelman.engine.failure import RunFailure
from keelman.engine.progress import Progress
from keelman.engine.sink.commits import SinkCommits
from keelman.engine.sink.consumer.place import ConsumerPlace
from keelman.engine.sink.consumer.subscription import Subscription
from keelman.engine.sink.pipeline import SinkPipeline
from keelman.engine.sink.polling import Polling
from keelman.engine.sink.positions.positions import Positions
from keelman.engine.sink.positions.relocation import Reset, goes_on_at
from keelman.engine.sink.positions.source_topics import SourceTopics
from keelman.engine.sink.positions.start import ANSWER_SECONDS, Beginnings, Begun
from keelman.engine.sink.steering import Steering


@dataclass(slots=True)
class SinkAssignment:
    """Follows the assignment of one run of one sink task; its thread alone uses it, in the consumer's callbacks too.
    Its methods raise KafkaException, RunFailure, Unavailable, and what the writer raises."""

    consumer: Consumer
    _: KW_ONLY
    writer: Writer
    pipeline: SinkPipeline
    positions: Positions
    polling: Polling
    commits: SinkCommits
    topics: SourceTopics
    beginnings: Beginnings
    place: ConsumerPlace
    subscription: Subscription
    reset: Reset
    steering: Steering
    progress: Progress
    log: Any
    _starts: dict[TopicPartition, int] = field(default_factory=dict)
    _ended: bool = False

    def subscribe(self) -> None:
        """Joins the group."""
        self.subscription.begin(self.consumer, self._assigned, self._revoked, self._lost)
        self.subscription.look = self.topics.all_names

    def end(self) -> None:
        """Ignores later callbacks, because the run has ended. A closing consumer calls back in its own thread, with
        revoked and even new partitions; none of them is committed, begun or passed to the writer."""
        self._ended = True
        self.commits.forget()

    def begin_again(self) -> None:
        """Drops all read records, and begins the assignment again from the committed offsets."""
        self._begin(self.consumer.assignment())

    def relocate(self, where: TopicPartition, error: KafkaError) -> None:
        """Moves the position to where the log still has untaken records. Raises RunFailure if the log was truncated
        below an offset that a writer keeps with its data: the next run decides by that."""
        if where not in self.positions:
            return
        due, epoch = self.positions.due(where)
        bounds = self.beginnings.found(self.consumer, where, epoch)
        at = None if due is None else goes_on_at(due, bounds)
        if due is not None and at is not None and at < due and self.writer.keeps_offsets:
            raise RunFailure("LOG_TRUNCATED", f"partition {where} was truncated to {at}, and {due} was the next offset")
        self.log.warning("source_position_lost", partition=str(where), offset=due, goes_on=at, why=error.str())
        if at is None:
            at = bounds.end if self.reset.offset(str(where), error.str()) == OFFSET_END else bounds.begin
        self.positions.move(where, at)
        self.go_on()

    def follow(self) -> None:
        """Moves positions to the offsets that the writer seeks to, if any."""
        seeks = {where: at for where, at in self.steering.take_seeks().items() if where in self.positions}
        if seeks:
            self.commits.settle()
        for where, at in seeks.items():
            self.log.info("sink_went_elsewhere", partition=str(where), offset=at)
            self.positions.rewind(where, at)
        if seeks:
            self.commits.advanced()
            self.go_on()

    def go_on(self) -> None:
        """Continues reading behind the written records, and drops records read since.

        The client does not seek in a partition that it has stopped fetching: so all partitions are assigned again."""
        self.consumer.assign([self._at(partition) for partition in self.positions.partitions()])
        self.polling.drop()
        self.polling.hold_again()

    def _at(self, client_partition: ClientPartition) -> ClientPartition:
        where = partition_of(client_partition)
        due, _ = self.positions.due(where)
        return ClientPartition(*where, self._starts[where] if due is None else due)

    def _assigned(self, consumer: Consumer, partitions: list[ClientPartition]) -> None:
        """Handles assigned partitions: all of them or, in a group that moves partitions one by one, additional ones."""
        if self._ended or self.place.given_up(consumer, self.subscription, partitions):
            return
        mine = self.positions.partitions()
        if not mine:
            self._begin(partitions)
        elif partitions and self.writer.commits_on_time:
            self._begin_more(partitions)
        elif partitions:
            self._end()
            self._begin([*mine, *partitions])

    def _begin(self, partitions: list[ClientPartition]) -> None:
        """Begins with these partitions and no others."""
        begun = self.beginnings.of(self.consumer, self.writer, partitions)
        self.commits.forget()
        self.topics.begin({entry.where.topic: entry.topic_id for entry in begun})
        self._starts.clear()
        starts = self._take(begun)
        contract.ASSIGNED.of(self.writer.assigned, starts)
        for where, at in self.steering.take_seeks().items():
            if where in self.positions:
                self.positions.rewind(where, at)
        self.consumer.assign([self._at(ClientPartition(*where)) for where in starts])
        self.polling.hold_again()
        self.positions.assigned = True
        self.progress.changed = True

    def _begin_more(self, partitions: list[ClientPartition]) -> None:
        """Adds these partitions to the present ones, whose reading continues meanwhile."""
        starts = self._take(self.beginnings.of(self.consumer, self.writer, partitions))
        self._tell_all()
        for where, at in self.steering.take_seeks().items():
            if where in starts:
                self.positions.rewind(where, at)
            else:  # happens once the records read from it are written
                self.steering.seek(where, at)
        self.consumer.incremental_assign([self._at(ClientPartition(*where)) for where in starts])
        self.polling.hold_again()
        self.progress.changed = True

    def _tell_all(self) -> None:
        """Passes all present partitions to the writer, which had others before."""
        mine = [partition_of(partition) for partition in self.positions.partitions()]
        self.topics.go_on({where.topic: "" for where in mine})
        contract.ASSIGNED.of(self.writer.assigned, {where: self.positions.due(where)[0] for where in mine})

    def _take(self, begun: list[Begun]) -> dict[TopicPartition, int | None]:
        """Begins the partitions' positions. Returns their first offsets, None where `auto.offset.reset` decides."""
        starts: dict[TopicPartition, int | None] = {}
        for entry in begun:
            self.positions.begin(entry.where, entry.group.shown, entry.start.offset, entry.topic_id, entry.leader_epoch)
            starts[entry.where], start = entry.start.offset, self._start(entry)
            if entry.start.offset is None and self.writer.commits_on_time:
                starts[entry.where] = start = self._looked_up(entry, start)
                self.positions.move(entry.where, start)
            elif start < 0 and entry.bounds is not None:
                start = self._looked_up(entry, start)
            self._starts[entry.where] = start
        return starts

    def _start(self, begun: Begun) -> int:
        """Returns the first offset; the client library's number for beginning or end if the offset is not known yet."""
        if begun.start.offset is not None:
            return begun.start.offset
        if begun.start.from_beginning:
            return int(OFFSET_BEGINNING)
        return self.reset.offset(str(begun.where), "its group has no offset")

    def _looked_up(self, begun: Begun, start: int) -> int:
        """Returns the offset for the library's number of beginning or end."""
        bounds = begun.bounds
        begin, end = bounds or self.consumer.get_watermark_offsets(
            ClientPartition(*begun.where), timeout=ANSWER_SECONDS
        )
        return int(begin if start == OFFSET_BEGINNING else end)

    def _revoked(self, _consumer: Consumer, taken: list[ClientPartition]) -> None:
        """Handles revoked partitions: all or some, as with `_assigned`."""
        if self._ended:
            return
        gone = {partition_of(partition) for partition in taken}
        left = [partition for partition in self.positions.partitions() if partition_of(partition) not in gone]
        if left and self.writer.commits_on_time:
            self._end_some(gone)
        else:
            self._end()
            if left:
                self._begin(left)

    def _end_some(self, gone: set[TopicPartition]) -> None:
        """Gives up these partitions. For the others, waits for the writer's current batch and reads the rest again."""
        self._settle()
        self.commits.keep(only=gone)
        self.commits.send_group(asynchronous=False)
        self.commits.drop(gone)
        self._tell_all()
        self.go_on()

    def _settle(self) -> None:
        self.pipeline.give_up()  # a waiting batch will go to another task
        with suppress(GaveUp):
            self.commits.settle(last=True)

    def _end(self) -> None:
        """Gives up all partitions."""
        self._settle()
        if self.positions:
            self.commits.keep()
            self.commits.send_group(asynchronous=False)
        if self.positions.assigned:
            contract.HAND_OVER.of(self.writer.hand_over)
        self.commits.forget()

    def _lost(self, _consumer: Consumer, _partitions: list[ClientPartition]) -> None:
        """Handles partitions that the group has already given to others.

        A writer that no other task can have replaced still keeps its written data. Data that others may have begun to
        write again must not be kept: the run ends, and its writer gives up its uncommitted data.
        """
        if self._ended:
            return
        if self.writer.zombie_seconds > 0 and self.positions.assigned:
            self.commits.forget()
            raise RunFailure("FENCED", "the group gave the task's partitions to others")
        if self.positions and self.writer.keeps_offsets:
            self.commits.keep()
        if self.positions.assigned:
            contract.LOST.of(self.writer.lost)
        self.commits.forget()
