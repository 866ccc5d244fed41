"""Java sinks with cooperative assignors, beside other members of their group."""

from __future__ import annotations

import pytest

from support.java.kit import needs_java
from support.java.scripted_sink import Scripted
from support.kafka.members import Member, member
from support.kafka.topics import add_partitions, create_topic
from support.waiting import until

pytestmark = [pytest.mark.component, needs_java()]
KEY, PACKAGE = "consumer_override_partition_assignment_strategy", "org.apache.kafka.clients.consumer"
SHARED_SECONDS = 20.0
EACH = 50


class Shared:
    """A sink whose topic has two partitions; the records that it and other members have read of them."""

    def __init__(self, scripted: Scripted) -> None:
        self.scripted, self.topic = scripted, f"{scripted.name}-b"
        self._others: list[Member] = []
        self._sent: list[str] = []
        create_topic(scripted.bootstrap, self.topic, 2)

    def send(self) -> None:
        """Sends records to both partitions; returns once each was read, and none twice."""
        for partition in (0, 1):
            values = [f"v{len(self._sent) + n}" for n in range(EACH)]
            self._sent += values
            self.scripted.send(values, self.topic, partition=partition)
        until(lambda: sorted(self._read()) == sorted(self._sent), f"{len(self._sent)} are read: {self._read()[-3:]}")

    def _read(self) -> list[str]:
        values = self.scripted.values() + [value for other in self._others for value in other.values]
        assert len(values) == len(set(values)), "nothing twice"
        return values

    def joined_by(self, other: Member) -> int:
        """The other member's partition, once it has one."""
        self._others.append(other)
        until(lambda: len(other.places) == 1, "both have one", SHARED_SECONDS)
        return next(iter(other.places))

    def shown(self, *partitions: int) -> str:
        return ",".join(f"{self.topic}-{number}" for number in partitions)


def test_partitions_change_hands_one_by_one_where_the_only_assignor_is_cooperative(scripted: Scripted) -> None:
    shared, both = Shared(scripted), (0, 1)
    with scripted.hosted(topics=shared.topic, **{KEY: f"{PACKAGE}.CooperativeStickyAssignor"}) as process:
        until(lambda: scripted.noted("open") == [f"{shared.shown(*both)} of {shared.shown(*both)}"], "it has both")
        shared.send()
        with member(scripted.bootstrap, f"connect-{scripted.name}", shared.topic) as other:
            theirs = shared.joined_by(other)
            assert scripted.noted("close") == [shared.shown(theirs)]
            shared.send()
            assert len(other.values) == EACH
        until(lambda: len(scripted.noted("open")) == 2, "it has both again")
        assert scripted.noted("open")[1] == f"{shared.shown(theirs)} of {shared.shown(*both)}"
        shared.send()
        scripted.stopped(process)
    assert scripted.noted("close") == [shared.shown(theirs), shared.shown(*both)]
    assert [scripted.group(shared.topic, number) for number in both] == [3 * EACH] * 2


def test_topics_and_partitions_that_come_are_opened_beside_those_that_stay(scripted: Scripted) -> None:
    name = scripted.name
    first, second, more = f"{name}-x1-0", f"{name}-x2-0", f"{name}-x1-1"
    fields = {"topics_regex": f"{name}-x.*", "consumer_override_metadata_max_age_ms": "1000"}
    create_topic(scripted.bootstrap, f"{name}-x1")
    with scripted.hosted(topics="", **fields, **{KEY: f"{PACKAGE}.CooperativeStickyAssignor"}) as process:
        until(lambda: scripted.noted("open") == [f"{first} of {first}"], "it has the first topic")
        create_topic(scripted.bootstrap, f"{name}-x2")
        until(lambda: scripted.noted("open")[-1] == f"{second} of {first},{second}", "and the second")
        add_partitions(scripted.bootstrap, f"{name}-x1", 2)
        until(lambda: scripted.noted("open")[-1] == f"{more} of {first},{more},{second}", "and what was added")
        scripted.send(["v0", "v1"], f"{name}-x1", partition=1)
        scripted.send(["v2"], f"{name}-x2")
        scripted.until_put(process, ["v0", "v1", "v2"])
        assert scripted.noted("close") == []
        scripted.stopped(process)


@pytest.mark.parametrize(
    ("assignors", "others"),
    [
        ("", "cooperative-sticky"),
        ("RangeAssignor, CooperativeStickyAssignor", "cooperative-sticky"),
        ("RoundRobinAssignor", "roundrobin"),
    ],
)
def test_partitions_change_hands_all_at_once_where_one_of_the_assignors_is_not(
    scripted: Scripted, assignors: str, others: str
) -> None:
    """As in Kafka Connect, also with a member that supports only a cooperative assignor."""
    shared, both = Shared(scripted), (0, 1)
    text = ",".join(f"{PACKAGE}.{part.strip()}" for part in assignors.split(",") if part)
    with scripted.hosted(topics=shared.topic, **({KEY: text} if text else {})) as process:
        until(lambda: scripted.noted("open"), "it has both")
        shared.send()
        with member(scripted.bootstrap, f"connect-{scripted.name}", shared.topic, others) as other:
            theirs = shared.joined_by(other)
            mine = shared.shown(1 - theirs)
            until(lambda: scripted.noted("open")[-1] == f"{mine} of {mine}", "it has one")
            assert scripted.noted("close")[0] == shared.shown(*both)
            shared.send()
        until(lambda: scripted.noted("open")[-1] == f"{shared.shown(*both)} of {shared.shown(*both)}", "both again")
        shared.send()
        scripted.stopped(process)


def test_two_tasks_with_a_sticky_assignor_share_a_topic(scripted: Scripted) -> None:
    shared = Shared(scripted)
    fields = {"topics": shared.topic, KEY: f"{PACKAGE}.StickyAssignor"}
    with scripted.hosted(**fields) as first:
        until(lambda: scripted.noted("open"), "it has both")
        shared.send()
        with scripted.hosted(task=1, **fields) as second:
            until(lambda: len(scripted.noted("open")) == 3, "each has one", SHARED_SECONDS)
            shared.send()
            scripted.stopped(second)
        scripted.stopped(first)


def test_a_sink_begins_at_once_with_an_assignor_that_has_nothing_in_common_with_the_one_before(
    scripted: Scripted,
) -> None:
    """Its former self is still a member, with the other assignor: a static member keeps its place when it ends."""
    shared = Shared(scripted)
    fields = {"topics": shared.topic, "consumer_override_session_timeout_ms": "30000"}
    with scripted.hosted(**fields, **{KEY: f"{PACKAGE}.RangeAssignor"}) as process:
        shared.send()
        scripted.stopped(process)
    with scripted.hosted(**fields, **{KEY: f"{PACKAGE}.CooperativeStickyAssignor"}) as process:
        until(lambda: len(scripted.noted("open")) == 2, "it has its partitions", 20)
        shared.send()
        scripted.stopped(process)
