"""Decides which task of a Kafka sink may commit for a partition: the last task that has claimed it fences the others.

A task that has lost its partitions without knowing (it was frozen, or waited for longer than `max.poll.interval.ms`)
could still commit records that a sibling copies by now. A claim is a record of the kept topic with the transactional id
of the task that may commit. A task that is assigned a partition fences, by InitProducerId, every other producer that
claims it, and makes its own claim; so none of their transactions can be committed any more, on whatever cluster the
source is. The offsets of their claims order two tasks that do so at the same time: the later task finds the earlier
claim when it reads on, and fences that task; the earlier task gives up. See docs/decisions/0013.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from keelman.connect.plugin import KeptOffset
from keelman.connect.records import TopicPartition
from keelman.connect.tasks.kept_offsets import Assignment, SinkReader
from keelman.engine.failure import RunFailure
from keelman.engine.producing.producer import OffsetRecord
from keelman.engine.sink.exactly_once.kept_topic import KeptRows, KeptTopic, claim_record, offset_record, old_tombstone
from keelman.engine.sink.positions.offsets import is_ours
from keelman.runtime.logs.logging import get_logger

_log = get_logger()


class Claims:
    """The claims of one task. `commit` commits records alone, `fence` fences the producers of transactional ids."""

    def __init__(
        self,
        topic: KeptTopic,
        me: str,
        *,
        commit: Callable[[Sequence[OffsetRecord]], None],
        fence: Callable[[Collection[str]], None],
        beat: Callable[[], None],
    ) -> None:
        """`me` is the task's own transactional id."""
        self._topic, self._me = topic, me
        self._commit, self._fence, self._beat = commit, fence, beat
        self._held: Assignment | None = None

    def take_over(self, assignment: Assignment) -> dict[TopicPartition, KeptOffset]:
        """Returns the kept offsets of the partitions once no other task can commit for them.

        Raises RunFailure when another task has claimed a partition meanwhile, and what its functions raise.
        """
        self._held = None
        reader, partitions = assignment.reader, assignment.offsets.keys()
        rows = self._topic.read(reader, self._beat)
        while records := self._records(rows, assignment):
            if shut_out := rivals(rows, self._me, partitions):
                _log.info("sink_siblings_shut_out", transactional_ids=sorted(shut_out))
                self._fence(shut_out)
            self._commit(records)
            rows = self._topic.read(reader, self._beat)
            if late := overtaken(rows, self._me, partitions):
                raise RunFailure("FENCED", f"another task has claimed {', '.join(map(str, sorted(late)))} meanwhile")
        self._held = assignment
        return rows.kept

    def hand_over(self) -> None:
        """Takes the claims back, so that the next task need not fence this one."""
        held, self._held = self._held, None
        if held is not None and held.offsets:
            self._commit([claim_record(held.reader, offset, self._me, holds=False) for offset in held.offsets])

    def kept(self, news: Mapping[TopicPartition, KeptOffset]) -> list[OffsetRecord]:
        """Returns the records that keep these offsets. Raises RunFailure for partitions that the task has not taken
        over."""
        held = self._held
        if news and (held is None or not news.keys() <= held.offsets.keys()):
            raise RunFailure("FENCED", "offsets of partitions that the task does not have would be stored")
        return (
            []
            if held is None
            else [offset_record(held.reader, where, kept_offset) for where, kept_offset in news.items()]
        )

    def _records(self, rows: KeptRows, assignment: Assignment) -> list[OffsetRecord]:
        adopted = adoptions(rows, assignment)
        if adopted:
            _log.info("old_kept_offsets_adopted", partitions=len(adopted) // 2)
        return [*claims(rows, assignment.reader, self._me, assignment.offsets.keys()), *adopted]


def rivals(rows: KeptRows, me: str, partitions: Collection[TopicPartition]) -> set[str]:
    """Returns the other transactional ids that claim any of these partitions."""
    return {holder for partition in partitions for holder in rows.claims.get(partition, ()) if holder != me}


def claims(rows: KeptRows, reader: SinkReader, me: str, partitions: Collection[TopicPartition]) -> list[OffsetRecord]:
    """Returns the records that leave one claim on each of these partitions; none for a partition that has only that."""
    records = []
    for partition in partitions:
        there = rows.claims.get(partition, {})
        if there.keys() == {me}:
            continue
        records += [claim_record(reader, partition, holder, holds=False) for holder in there if holder != me]
        records.append(claim_record(reader, partition, me, holds=True))
    return records


def overtaken(rows: KeptRows, me: str, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
    """Returns the partitions that another task has claimed later, or whose claim another task has taken back."""
    lost = set()
    for partition in partitions:
        there = rows.claims.get(partition, {})
        if me not in there or max(there.values()) > there[me]:
            lost.add(partition)
    return lost


def adoptions(rows: KeptRows, assignment: Assignment) -> list[OffsetRecord]:
    """Returns the records that move offsets without a reader, of an older version, to the reader that surely owns
    them."""
    records = []
    for partition, shown in assignment.offsets.items():
        old = rows.old.get(partition)
        if old is None or partition in rows.kept:
            continue
        if is_ours(old, shown, shared=partition in rows.shared):
            records += [offset_record(assignment.reader, partition, old), old_tombstone(partition)]
    return records
