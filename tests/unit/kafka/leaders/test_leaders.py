"""Which broker's report of leaders and topic ids counts."""

from keelman.kafka.leaders.leaders import Leaders
from keelman.kafka.leaders.metadata import Leader, TopicInfo


def told(topic_id: str, *leaders: tuple[int, int]) -> dict[str, TopicInfo]:
    return {"t": TopicInfo("t", topic_id, 0, {number: Leader(*leader) for number, leader in enumerate(leaders)})}


def test_the_newest_epoch_counts_whoever_tells_it() -> None:
    leaders = Leaders()
    leaders.learn(told("a", (1, 5), (2, 3)), 1, 3)
    behind = leaders.learn(told("a", (3, 4), (3, 4)), 3, 3)["t"]
    assert behind.partitions == {0: Leader(1, 5), 1: Leader(3, 4)}
    leaders.learn(told("a", (-1, 6), (3, 4)), 2, 3)
    assert leaders.of(("t", 0)) == Leader(-1, 6), "it has none just now"
    leaders.learn({"t": TopicInfo("t", "", 3, {})}, 1, 3)
    assert leaders.of(("t", 1)) == Leader(3, 4)


def test_two_brokers_say_that_another_topic_goes_by_the_name() -> None:
    leaders = Leaders()
    leaders.learn(told("a", (1, 5), (1, 5)), 1, 3)
    assert not leaders.agreed("t")
    behind = leaders.learn(told("b", (2, 0)), 2, 3)["t"]
    assert (behind.id, behind.partitions) == ("a", {0: Leader(1, 5), 1: Leader(1, 5)})
    leaders.learn(told("b", (2, 0)), 2, 3)
    assert (leaders.topic_id("t"), leaders.disputed("t")) == ("a", True), "it is the same broker"
    leaders.learn(told("b", (2, 0)), 3, 3)
    assert (leaders.topic_id("t"), leaders.of(("t", 0)), leaders.of(("t", 1))) == ("b", Leader(2, 0), None)
    assert leaders.agreed("t")
    leaders.learn(told("a", (1, 5), (1, 5)), 1, 3)
    assert (leaders.topic_id("t"), leaders.disputed("t")) == ("b", False), "that broker is behind"
    leaders.learn(told("b", (2, 0)), 1, 3)
    assert leaders.agreed("t")


def test_a_single_broker_is_believed_at_once() -> None:
    leaders = Leaders()
    leaders.learn(told("a", (1, 5)), 1, 1)
    leaders.learn(told("b", (1, 0)), 1, 1)
    assert (leaders.topic_id("t"), leaders.of(("t", 0)), leaders.agreed("t")) == ("b", Leader(1, 0), True)


def test_without_ids_a_smaller_epoch_may_be_that_of_another_topic() -> None:
    leaders = Leaders()
    leaders.learn(told("", (1, 5)), 1, 1)
    leaders.learn(told("", (2, 0)), 1, 1)
    assert leaders.of(("t", 0)) == Leader(2, 0)
