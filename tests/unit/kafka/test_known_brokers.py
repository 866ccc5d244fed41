"""What a process remembers of the clusters that its clients have met."""

from __future__ import annotations

from keelman.kafka.known_brokers import KEPT_SECONDS, MOST, KnownBrokers

MINE = {"bootstrap.servers": "here:9092", "sasl.jaas.config": "mine"}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_brokers_are_known_to_those_of_the_same_properties_for_a_while() -> None:
    clock = Clock()
    known = KnownBrokers(clock)
    assert (known.of(MINE), known.features(MINE)) == ({}, None)
    known.note_features(MINE, {"transaction.version": 2})
    assert known.features(MINE) is None, "of a cluster that nobody has met"
    known.met(MINE, {1: "broker"})
    known.note_features(MINE, {"transaction.version": 2})
    assert (known.of(dict(MINE)), known.features(MINE)) == ({1: "broker"}, {"transaction.version": 2})
    assert known.of({**MINE, "sasl.jaas.config": "another's"}) == {}
    known.of(MINE).clear()
    assert known.of(MINE), "each has its own"
    clock.now += KEPT_SECONDS
    assert (known.of(MINE), known.features(MINE)) == ({}, None)


def test_brokers_that_do_not_answer_are_forgotten_and_so_are_the_oldest_of_many() -> None:
    known = KnownBrokers()
    known.met(MINE, {1: "broker"})
    known.forget(MINE)
    assert known.of(MINE) == {}
    for number in range(MOST + 1):
        known.met({"bootstrap.servers": str(number)}, {1: "broker"})
    assert known.of({"bootstrap.servers": "0"}) == {}
    assert known.of({"bootstrap.servers": "1"})
