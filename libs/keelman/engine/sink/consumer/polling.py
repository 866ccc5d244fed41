"""Polls a sink's consumer often enough to keep its place in the group, also while a batch waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect.records import TopicPartition
from keelman.engine.control import GaveUp
from keelman.engine.failure import RunFailure
from keelman.engine.sink.consumer.own_consumer import OwnRecords, ReadsWhole
from keelman.engine.sink.positions.positions import Positions

YOUNG_SECONDS = 1.0
"""A poll that was so long ago is repeated before a commit and while a batch waits."""


class Polling:
    """Polls the consumer of one copy run; its thread alone uses it."""

    def __init__(
        self,
        consumer: Consumer,
        positions: Positions,
        lapse_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`lapse_seconds` after its last poll, or sooner, a member that gives no sign of life loses its place."""
        self._consumer, self._positions, self._clock = consumer, positions, clock
        self._lapse = lapse_seconds
        self._polled_at = clock()
        self._early: list[Message] = []
        self._held: set[TopicPartition] = set()
        self.paused = False

    def read(self, most: int, seconds: float) -> list[Message] | OwnRecords | None:
        """At most so many messages; waits so long for the first. None where a rebalance came between two of them."""
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
        """Nothing more is fetched; what was fetched ahead is dropped."""
        if not self.paused:
            self._consumer.pause(self._positions.partitions())
            self.paused = True

    def resume(self) -> None:
        """Fetches again."""
        if self.paused:
            self._consumer.resume([one for one in self._positions.partitions() if _place(one) not in self._held])
            self.paused = False

    def hold(self, partitions: Collection[TopicPartition]) -> None:
        """Nothing of these is read until they are released or assigned again."""
        self._held |= {one for one in partitions if one in self._positions}
        self.hold_again()
        self._early = [one for one in self._early if not self._is_held(one)]

    def release(self, partitions: Collection[TopicPartition]) -> None:
        """These are read again, unless all are paused."""
        freed = self._held & set(partitions)
        self._held -= freed
        if freed and not self.paused:
            self._consumer.resume([ClientPartition(*one) for one in freed])

    def hold_again(self) -> None:
        """Pauses what is not to be read now: the consumer was given partitions, again or more of them."""
        if self.paused:
            self._consumer.pause(self._positions.partitions())
        elif self._held:
            self._consumer.pause([ClientPartition(*one) for one in self._held])

    def forget(self) -> None:
        """Forgets partitions that are no longer assigned, with what was read of them.

        Called while they are still known: one that was paused would be so when it is assigned the next time."""
        held, self._held = self._held, set()
        self.drop()
        if held:
            self._consumer.resume([ClientPartition(*one) for one in held])

    def drop(self) -> None:
        """What was read ahead is read again, from the position that the consumer was given."""
        self.resume()
        self._early.clear()

    def attend(self) -> bool:
        """Polls if it is time, before a commit; whether the assignment is what it was.

        A message that comes with it, of whatever is assigned by then, is given by the next `read`.
        """
        if self._clock() - self._polled_at < YOUNG_SECONDS:
            return True
        assignments = self._positions.assignments
        message = self._poll(0)
        if message is not None:
            self._early.append(message)
        return assignments == self._positions.assignments

    def attend_in_batch(self) -> None:
        """The same while a batch waits, with the partitions paused. Raises GaveUp when it is not ours any more."""
        self.pause()
        if not self.attend():
            raise GaveUp

    def check(self) -> None:
        """Raises RunFailure when the group may have given the partitions away for lack of a sign of life."""
        silent = self._clock() - self._polled_at
        if silent >= self._lapse:
            raise RunFailure(
                "FENCED", f"the task has not polled for {silent:.1f} s: the group may have given its partitions away"
            )

    def _is_held(self, message: Message) -> bool:
        return message.error() is None and TopicPartition(message.topic(), message.partition()) in self._held


def _place(one: ClientPartition) -> TopicPartition:
    return TopicPartition(one.topic, one.partition)
