"""The brokers that a process remembers of the clusters that its clients have met."""

from __future__ import annotations

from keelman.kafka.known_brokers import KEPT_SECONDS, MOST, KnownBrokers

MINE = {"bootstrap.servers": "here:9092", "sasl.jaas.config": "mine"}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_brokers_are_known_to_those_of_the_same_properties_for_a_while() -> None:
    clock = Clock()
    known_brokers = KnownBrokers(clock)
    assert (known_brokers.of(MINE), known_brokers.features(MINE)) == ({}, None)
    known_brokers.note_features(MINE, {"transaction.version": 2})
    assert known_brokers.features(MINE) is None, "of an unknown cluster"
    known_brokers.met(MINE, {1: "broker"})
    known_brokers.note_features(MINE, {"transaction.version": 2})
    assert (known_brokers.of(dict(MINE)), known_brokers.features(MINE)) == ({1: "broker"}, {"transaction.version": 2})
    assert known_brokers.of({**MINE, "sasl.jaas.config": "another's"}) == {}
    known_brokers.of(MINE).clear()
    assert known_brokers.of(MINE), "each has its own"
    clock.now += KEPT_SECONDS
    assert (known_brokers.of(MINE), known_brokers.features(MINE)) == ({}, None)


def test_brokers_that_do_not_answer_are_forgotten_and_so_are_the_oldest_of_many() -> None:
    known_brokers = KnownBrokers()
    known_brokers.met(MINE, {1: "broker"})
    known_brokers.forget(MINE)
    assert known_brokers.of(MINE) == {}
    for number in range(MOST + 1):
        known_brokers.met({"bootstrap.servers": str(number)}, {1: "broker"})
    assert known_brokers.of({"bootstrap.servers": "0"}) == {}
    assert known_brokers.of({"bootstrap.servers": "1"})
