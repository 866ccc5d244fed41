"""Polls a sink's consumer often enough to keep its place in the group, also while a batch waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect.records import TopicPartition
from keelman.engine.clients import partition_of
from keelman.engine.control import GaveUp
from keelman.engine.failure import RunFailure
from keelman.engine.sink.consumer.own_consumer import OwnRecords, ReadsWhole
from keelman.engine.sink.positions.positions import Positions

YOUNG_SECONDS = 1.0
"""The age at which a poll is repeated before a commit and while a batch waits."""


class Polling:
    """Polls the consumer of one copy run; its thread alone uses it."""

    def __init__(
        self,
        consumer: Consumer,
        positions: Positions,
        lapse_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`lapse_seconds` after its last poll, or sooner, a member without a sign of life loses its place."""
        self._consumer, self._positions, self._clock = consumer, positions, clock
        self._lapse = lapse_seconds
        self._polled_at = clock()
        self._early: list[Message] = []
        self._held: set[TopicPartition] = set()
        self.paused = False

    def read(self, most: int, seconds: float) -> list[Message] | OwnRecords | None:
        """Returns at most `most` messages; waits up to `seconds` for the first. Returns None if a rebalance came
        between two of them."""
        if isinstance(self._consumer, ReadsWhole):
            try:
                return self._consumer.read(most, seconds)
            finally:
                self._polled_at = self._clock()
        messages, self._early = self._early, []
        if not messages:
            first = self._poll(seconds)
            if first is None:
                return []
            messages = [first]
        assignments = self._positions.assignments
        if len(messages) < most:
            messages += self._consumer.consume(most - len(messages), 0)
        return messages if assignments == self._positions.assignments else None

    def _poll(self, seconds: float) -> Message | None:
        self._polled_at = self._clock()
        try:
            return self._consumer.poll(seconds)
        finally:
            self._polled_at = self._clock()

    def pause(self) -> None:
        """Pauses all partitions; drops prefetched records."""
        if not self.paused:
            self._consumer.pause(self._positions.partitions())
            self.paused = True

    def resume(self) -> None:
        """Fetches again."""
        if self.paused:
            self._consumer.resume(
                [partition for partition in self._positions.partitions() if partition_of(partition) not in self._held]
            )
            self.paused = False

    def hold(self, partitions: Collection[TopicPartition]) -> None:
        """Stops reading these partitions until they are released or assigned again."""
        self._held |= {partition for partition in partitions if partition in self._positions}
        self.hold_again()
        self._early = [message for message in self._early if not self._is_held(message)]

    def release(self, partitions: Collection[TopicPartition]) -> None:
        """Reads these partitions again, unless all are paused."""
        freed = self._held & set(partitions)
        self._held -= freed
        if freed and not self.paused:
            self._consumer.resume([ClientPartition(*partition) for partition in freed])

    def hold_again(self) -> None:
        """Pauses partitions that must not be read now, after the consumer got partitions again or more of them."""
        if self.paused:
            self._consumer.pause(self._positions.partitions())
        elif self._held:
            self._consumer.pause([ClientPartition(*partition) for partition in self._held])

    def forget(self) -> None:
        """Forgets partitions that are no longer assigned, with their read records.

        Called while they are still known: a partition left paused would still be when it is assigned the next time."""
        held, self._held = self._held, set()
        self.drop()
        if held:
            self._consumer.resume([ClientPartition(*partition) for partition in held])

    def drop(self) -> None:
        """Drops records that were read ahead: they are read again, from the consumer's new position."""
        self.resume()
        self._early.clear()

    def attend(self) -> bool:
        """Polls before a commit if that is due. Returns whether the assignment is unchanged.

        A message of that poll, of whatever partition is assigned by then, is returned by the next `read`.
        """
        if self._clock() - self._polled_at < YOUNG_SECONDS:
            return True
        assignments = self._positions.assignments
        message = self._poll(0)
        if message is not None:
            self._early.append(message)
        return assignments == self._positions.assignments

    def attend_in_batch(self) -> None:
        """Polls while a batch waits, with the partitions paused. Raises GaveUp when the assignment has changed."""
        self.pause()
        if not self.attend():
            raise GaveUp

    def check(self) -> None:
        """Raises RunFailure when the group may have given the partitions away for lack of a sign of life."""
        silent = self._clock() - self._polled_at
        if silent >= self._lapse:
            raise RunFailure(
                "FENCED",
                f"the task has not polled for {silent:.1f} s: the group may have assigned its partitions to others",
            )

    def _is_held(self, message: Message) -> bool:
        return message.error() is None and TopicPartition(message.topic(), message.partition()) in self._held
