"""Which parked tasks an answer about end offsets wakes: for more records, deleted topics and new partitions."""

from __future__ import annotations

from typing import cast

import pytest

from keelman.connect.records import TopicPartition
from keelman.connect.watches import TopicWatch
from keelman.kafka.fetching.end_offsets import Ends, EndWatch
from keelman.worker.parking.topic_watches import WatchedTopics, _Cluster


class Cluster:
    """A watched cluster, with the tasks that it wakes."""

    def __init__(self) -> None:
        self.refreshed, self.counts, self.looks = 0.0, {"a": 1, "b": 1}, 0
        self.woken: list[str] = []
        self.watched = _Cluster({}, "client")

    def partitions_of(self, topic: str) -> int:
        self.looks += 1
        return self.counts.get(topic, 0)

    def watch(self, name: str, topic: str, position: int) -> None:
        watch = TopicWatch({}, {TopicPartition(topic, 0): position})
        self.watched.add(WatchedTopics(watch, lambda: self.woken.append(name)))

    def tells(self, **offsets: int) -> list[str]:
        """Returns the tasks that an answer with these end offsets wakes."""
        self.woken = []
        answer = Ends({(topic, 0): offset for topic, offset in offsets.items()})
        self.watched._judge(answer, cast("EndWatch", self))
        return sorted(self.woken)


def test_those_wake_whose_topic_has_more_than_they_have_read() -> None:
    cluster = Cluster()
    cluster.watch("early", "a", 3)
    cluster.watch("late", "a", 5)
    cluster.watch("other", "b", 0)
    assert cluster.tells(a=3, b=0) == []
    assert cluster.tells(a=5, b=0) == ["early"]
    assert cluster.tells(a=6, b=0) == ["late"]
    assert cluster.tells(a=7, b=1) == ["other"]


def test_new_partitions_wake_who_watches_that_topic_alone() -> None:
    cluster = Cluster()
    for name in ("one", "two"):
        cluster.watch(name, "a", 0)
    cluster.watch("other", "b", 0)
    assert cluster.tells(a=0, b=0) == []
    before = cluster.looks
    assert cluster.tells(a=0, b=0) == []
    assert cluster.looks == before, "nothing is read while the metadata is the same"
    cluster.counts, cluster.refreshed = {"a": 2, "b": 1}, 1.0
    assert cluster.tells(a=0, b=0) == ["one", "two"]
    cluster.watch("late", "a", 0)
    assert cluster.tells(a=0, b=0) == []
    cluster.counts, cluster.refreshed = {"a": 3, "b": 1}, 2.0
    assert cluster.tells(a=0, b=0) == ["late"]


def test_one_whose_topic_was_not_asked_about_yet_has_no_new_partitions() -> None:
    cluster = Cluster()
    cluster.counts = {"b": 1}
    cluster.watch("new", "a", 0)
    cluster.watch("other", "b", 0)
    assert cluster.tells(b=0) == []
    cluster.counts, cluster.refreshed = {"a": 4, "b": 1}, 1.0
    assert cluster.tells(a=0, b=0) == []
    cluster.counts, cluster.refreshed = {"a": 5, "b": 1}, 2.0
    assert cluster.tells(a=0, b=0) == ["new"]


@pytest.mark.parametrize(
    ("ages", "seconds"), [([], 10), (["", "300000"], 10), (["5000", "2000"], 2), (["100"], 0.5), (["x"], 10)]
)
def test_new_partitions_are_looked_for_as_often_as_who_wants_it_most_often_says(
    ages: list[str], seconds: float
) -> None:
    watched = _Cluster({}, "client")
    for number, age in enumerate(ages):
        value = {"metadata.max.age.ms": age} if age else {}
        watched.add(WatchedTopics(TopicWatch(value, {TopicPartition("a", number): 0}), lambda: None))
    assert watched.refresh_seconds == seconds
    for watch in list(watched.watched):
        watched.remove(watch)
    assert watched.refresh_seconds == 10
