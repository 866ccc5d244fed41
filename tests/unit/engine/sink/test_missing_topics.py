"""Which missing topics a sink reports, and when it queries the brokers."""

import socket
from collections.abc import Collection
from typing import cast

from keelman.connect.records import TopicPartition
from keelman.engine.sink.consumer.subscription import Subscription
from keelman.engine.sink.missing_topics import LOOK_SECONDS, MAX_NAMES, MissingTopics
from keelman.engine.sink.positions.positions import Positions
from keelman.engine.sink.positions.source_topics import SourceTopics


class Brokers:
    """Brokers with these topics, and the number of queries."""

    def __init__(self, *topics: str) -> None:
        self.topics, self.asked, self.now = set(topics), 0, 0.0
        self.answer = True

    def absent(self, topics: Collection[str]) -> set[str] | None:
        self.asked += 1
        return set(topics) - self.topics if self.answer else None

    def clock(self) -> float:
        return self.now


def missing_topics(config: dict[str, str], brokers: Brokers, *, assigned: str = "") -> MissingTopics:
    positions = Positions()
    positions.assigned = True
    if assigned:
        positions.begin(TopicPartition(assigned, 0), None, 0)
    return MissingTopics(Subscription(config), positions, cast("SourceTopics", brokers), brokers.clock)


def test_a_sink_without_a_partition_says_which_topics_are_not_there_until_all_are() -> None:
    brokers = Brokers("b")
    missing = missing_topics({"topics": "a,b"}, brokers)
    assert missing.waits_for() == missing.waits_for() == "waits for the topic a"
    assert brokers.asked == 1, "once in a while"
    brokers.topics.add("a")
    brokers.now += LOOK_SECONDS
    assert missing.waits_for() == ""


def test_a_sink_that_reads_asks_only_for_a_topic_that_its_consumer_met_an_error_of() -> None:
    brokers = Brokers("a")
    missing = missing_topics({"topics": "a,b"}, brokers, assigned="a")
    assert missing.waits_for() == ""
    assert brokers.asked == 0
    missing.suspect("b")
    assert missing.waits_for() == "waits for the topic b"
    brokers.topics.add("b")
    brokers.now += LOOK_SECONDS
    assert missing.waits_for() == ""
    brokers.now += LOOK_SECONDS
    assert missing.waits_for() == ""
    assert brokers.asked == 2, "no more once all are there"


def test_what_is_suspected_and_what_was_said_stay_while_no_broker_answers() -> None:
    brokers = Brokers("a")
    missing = missing_topics({"topics": "a,b,c"}, brokers, assigned="a")
    missing.suspect("b")
    brokers.answer = False
    assert missing.waits_for() == ""
    brokers.answer, brokers.now = True, LOOK_SECONDS
    assert missing.waits_for() == "waits for the topic b"
    brokers.answer, brokers.now = False, 2 * LOOK_SECONDS
    missing.suspect("c")
    assert missing.waits_for() == "waits for the topic b"
    brokers.answer, brokers.now = True, 3 * LOOK_SECONDS
    assert missing.waits_for() == "waits for the topics b, c"


def test_a_sink_that_has_no_answer_of_its_group_says_nothing() -> None:
    brokers = Brokers()
    missing = MissingTopics(Subscription({"topics": "a"}), Positions(), cast("SourceTopics", brokers), brokers.clock)
    assert missing.waits_for() == ""
    assert brokers.asked == 0


def test_so_many_are_named_and_the_others_counted() -> None:
    names = [f"t{number}" for number in range(MAX_NAMES + 2)]
    missing = missing_topics({"topics": ",".join(names)}, Brokers())
    assert missing.waits_for() == f"waits for the topics {', '.join(names[:MAX_NAMES])} and 2 more"


def test_a_pattern_that_nothing_matches_is_named() -> None:
    brokers = Brokers()
    assert missing_topics({"topics.regex": "or.*"}, brokers).waits_for() == "waits for a topic that matches or.*"
    assert brokers.asked == 0


def test_brokers_that_do_not_answer_say_nothing_of_topics() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        address = "{}:{}".format(*taken.getsockname())
        topics = SourceTopics({"bootstrap.servers": address}, lambda: None)
        assert topics.absent({"a"}) is None
