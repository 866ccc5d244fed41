"""Numbered writes: whatever is interrupted, held up or set by a person, a data set has each record as it should."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from keelman.connect.records import TopicPartition
from keelman.engine.sink.writes import Write, Writes
from keelman.kafka.groups.offsets import Committed

PARTITIONS = [TopicPartition("t", number) for number in range(3)]
MOST = 5
STEPS = ("noted", "written", "committed")
EVENTS = st.one_of(
    st.tuples(st.just("arrive"), st.integers(0, 2), st.integers(1, 8)),
    st.tuples(st.just("write"), st.sampled_from((*STEPS, "whole")), st.just(0)),
    st.tuples(st.just("set"), st.integers(0, 2), st.integers(0, 10)),
    st.tuples(st.just("held up"), st.just(0), st.just(0)),
)


@dataclass
class World:
    """Topics, a group and a data set that takes numbers once."""

    ends: dict[TopicPartition, int] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 0))
    group: dict[tuple[str, int], Committed] = field(default_factory=dict)
    numbers: dict[tuple[str, int], dict[TopicPartition, int]] = field(default_factory=dict)
    records: Counter[tuple[TopicPartition, int]] = field(default_factory=Counter)
    writers: itertools.count[int] = field(default_factory=itertools.count)

    def run(self) -> Writes:
        """A copy run that begins now."""
        return Writes(MOST, once=True, new_writer=lambda: f"{next(self.writers):032x}")

    def next(self, run: Writes) -> Write:
        """What a copy run has written now."""
        write = run.next(self.group, dict.fromkeys(PARTITIONS, 0), self.ends, latest=False)
        self.group |= run.repairs
        return write

    def write(self, run: Writes, until: str = "whole") -> Write:
        """One write, which is cut after a step."""
        write = self.next(run)
        if not write.stretches:
            return write
        if not write.again:
            self.group |= write.begun
        if until != "noted":
            self.take(write)
        if until in ("committed", "whole"):
            self.group |= write.ended
        if until == "whole":
            run.done(write)
        return write

    def take(self, write: Write) -> None:
        """The data set's part."""
        had = self.numbers.get((write.writer, write.version))
        if had is None:
            self.numbers[write.writer, write.version] = {s.where: s.end for s in write.stretches}
            self.records.update((s.where, offset) for s in write.stretches for offset in range(s.begin, s.end))
            return
        assert {s.where: s.end for s in write.stretches}.items() <= had.items(), "refused: WRITTEN_OTHERWISE"

    def finish(self, run: Writes) -> None:
        """Writes until nothing is left."""
        while self.write(run).stretches:
            pass


@dataclass
class Story:
    """What happens to a world, and the copy run that lives now."""

    world: World = field(default_factory=World)
    least: dict[TopicPartition, int] = field(default_factory=dict)
    """The lowest offsets that a person went back to."""

    def __post_init__(self) -> None:
        self.run, self.last = self.world.run(), Write()

    def happens(self, kind: str, what: object, number: int) -> None:
        """One event."""
        world = self.world
        if kind == "arrive":
            world.ends[PARTITIONS[int(str(what))]] += number
        elif kind == "write":
            self.last = world.write(self.run, str(what))
            if what != "whole":
                self.run = world.run()  # it was cut: another one begins
        elif kind == "set":
            where = PARTITIONS[int(str(what))]
            offset = min(number, world.ends[where])
            self.least[where] = min(offset, self.least.get(where, offset))
            world.group[(*where,)] = Committed(offset)
            self.run, self.last = world.run(), Write()  # a person sets offsets of a stopped connector
        elif self.last.stretches and (after := world.write(self.run)).stretches:
            # The copy run before commits its last write once more, after this one's, which looks again.
            world.group |= {where: entry for where, entry in self.last.ended.items() if where in after.ended}
            self.last = world.write(self.run)


@given(st.lists(EVENTS, max_size=40))
def test_each_record_is_there_once_unless_a_person_goes_back(events: list[tuple[str, object, int]]) -> None:
    story = Story()
    world, least = story.world, story.least
    for event in events:
        story.happens(*event)
    world.finish(story.run)
    for where, end in world.ends.items():
        for offset in range(end):
            count = world.records[where, offset]
            assert count == 1 or (where in least and (offset >= least[where] or count == 0)), (where, offset, count)
