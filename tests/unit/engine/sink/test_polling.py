"""How a sink's consumer is polled: the rules, with a consumer that never connects."""

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect.records import TopicPartition
from keelman.engine.control import GaveUp
from keelman.engine.failure import RunFailure
from keelman.engine.sink.polling import YOUNG_SECONDS, Polling
from keelman.engine.sink.positions.positions import Positions


class World:
    def __init__(self) -> None:
        self.now = 0.0
        self.polls = 0
        self.said: list[tuple[str, list[int]]] = []
        self.positions = Positions()
        consumer = Consumer({"group.id": "g", "bootstrap.servers": "127.0.0.1:1", "log_level": 0})
        world = self

        class Counted:
            def poll(self, seconds: float) -> None:
                world.polls += 1
                consumer.poll(0)
                world.on_poll()

            def pause(self, partitions: list[ClientPartition]) -> None:
                world.said.append(("pause", [partition.partition for partition in partitions]))

            def resume(self, partitions: list[ClientPartition]) -> None:
                world.said.append(("resume", [partition.partition for partition in partitions]))

        self.on_poll = lambda: None
        self.polling = Polling(Counted(), self.positions, 30.0, lambda: self.now)  # type: ignore[arg-type]


def test_a_young_poll_is_enough_and_an_older_one_is_repeated() -> None:
    world = World()
    world.now = YOUNG_SECONDS - 0.1
    assert world.polling.attend()
    assert world.polls == 0
    world.now = YOUNG_SECONDS
    assert world.polling.attend()
    assert world.polls == 1


def test_a_batch_is_given_up_when_it_is_anothers() -> None:
    world = World()
    world.now = 2.0
    world.polling.attend_in_batch()
    assert world.polling.paused
    world.now = 4.0
    world.on_poll = world.positions.forget
    with pytest.raises(GaveUp):
        world.polling.attend_in_batch()


def test_nothing_is_committed_after_a_silence_in_which_the_place_may_have_been_lost() -> None:
    world = World()
    world.now = 29.9
    world.polling.check()
    world.now = 30.0
    with pytest.raises(RunFailure, match=r"has not polled for 30.0 s"):
        world.polling.check()


def test_what_a_writer_has_paused_stays_so_when_all_is_resumed() -> None:
    world = World()
    for number in range(2):
        world.positions.begin(TopicPartition("t", number), None, 0)
    world.polling.hold([TopicPartition("t", 1), TopicPartition("u", 0)])
    world.polling.pause()
    world.polling.release([TopicPartition("u", 0)])
    world.polling.resume()
    assert world.said == [("pause", [1]), ("pause", [0, 1]), ("resume", [0])]
    world.polling.hold_again()
    world.polling.release([TopicPartition("t", 1)])
    assert world.said[3:] == [("pause", [1]), ("resume", [1])]
    world.polling.hold_again()
    assert len(world.said) == 5


def test_what_was_paused_is_not_so_when_it_is_assigned_the_next_time() -> None:
    world = World()
    world.positions.begin(TopicPartition("t", 0), None, 0)
    world.polling.pause()
    world.polling.forget()
    assert world.said == [("pause", [0]), ("resume", [0])]
    world.polling.hold([TopicPartition("t", 0)])
    world.polling.forget()
    assert world.said[2:] == [("pause", [0]), ("resume", [0])]
    world.polling.hold_again()
    assert len(world.said) == 4
