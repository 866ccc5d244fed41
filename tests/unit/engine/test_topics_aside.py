"""A topic that was set aside is retried ever later, until its target accepts a record of it."""

from keelman.connect.records import TopicPartition
from keelman.engine.topics_aside import FIRST_SECONDS, MOST_SECONDS, TopicsAside

ONE, TWO, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("o", 0)


class World:
    def __init__(self) -> None:
        self.now = 0.0
        self.aside = TopicsAside(lambda: self.now)


def test_a_topic_is_due_after_a_pause_that_doubles_up_to_a_minute() -> None:
    world = World()
    pauses = []
    for _ in range(10):
        world.aside.put([ONE, TWO], "no room")
        assert world.aside.due() == set()
        before = world.now
        while not (due := world.aside.due()):
            world.now += 0.25
        assert due == {ONE, TWO}
        assert world.aside.due() == set(), "each time once"
        pauses.append(world.now - before)
    assert FIRST_SECONDS / 2 <= pauses[0] <= FIRST_SECONDS + 0.25
    assert MOST_SECONDS / 2 <= pauses[-1] <= MOST_SECONDS + 0.25


def test_what_is_tried_is_taken_off_once_something_of_it_is_taken() -> None:
    world = World()
    world.aside.put([ONE], "no room")
    world.aside.taken([ONE])
    assert world.aside.counts() == {"t": 1}, "it was not tried"
    world.now = MOST_SECONDS
    assert world.aside.due() == {ONE}
    world.aside.taken([OTHER, TWO])
    assert world.aside.text() == "topic t is set aside: no room (tried again)"
    world.aside.taken([ONE])
    assert (world.aside.counts(), world.aside.text(), bool(world.aside)) == ({}, "", False)


def test_partitions_of_a_topic_come_one_after_the_other() -> None:
    world = World()
    world.aside.put([TWO], "no such partition")
    world.aside.put([OTHER], "no such topic")
    world.aside.put([ONE], "no such topic")
    assert world.aside.counts() == {"o": 1, "t": 2}
    assert world.aside.partitions == {ONE, TWO, OTHER}
    world.aside.forget()
    assert world.aside.partitions == set()
