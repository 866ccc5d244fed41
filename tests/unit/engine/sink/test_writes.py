"""What a sink whose data Spark writes has written next."""

from keelman.connect.records import TopicPartition
from keelman.engine.sink.write_notes import WriteNote
from keelman.engine.sink.writes import Stretch, Write, Writes
from keelman.kafka.groups.offsets import Committed

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ONE = "1" * 32
BEGINS = {A: 0, B: 0}


def writes(*, once: bool = True) -> Writes:
    return Writes(10, once=once, new_writer=lambda: ONE)


def test_without_numbers_a_write_begins_at_the_offsets() -> None:
    run = writes(once=False)
    write = run.next({("t", 0): Committed(3)}, BEGINS, {A: 5, B: 20}, latest=False)
    assert write == Write((Stretch(A, 3, 5), Stretch(B, 0, 8)))
    assert write.ended == {("t", 0): Committed(5), ("t", 1): Committed(8)}
    assert run.lag == 22


def test_all_partitions_get_the_number_of_a_write() -> None:
    write = writes().next({("t", 0): Committed(5)}, BEGINS, {A: 5, B: 2}, latest=False)
    assert write.begun == {
        ("t", 0): Committed(5, WriteNote(ONE, 1, 5).text),
        ("t", 1): Committed(0, WriteNote(ONE, 1, 2).text),
    }
    assert write.ended["t", 1] == Committed(2, WriteNote(ONE, 1, 2).text)


def test_an_interrupted_write_comes_again_though_there_is_more_by_now() -> None:
    kept = writes().next({}, BEGINS, {A: 5, B: 2}, latest=False).begun
    again = writes().next(kept, BEGINS, {A: 50, B: 20}, latest=False)
    assert (again.stretches, again.version, again.again) == ((Stretch(A, 0, 5), Stretch(B, 0, 2)), 1, True)


def test_records_that_brokers_removed_or_a_new_topic_of_the_name_shorten_it() -> None:
    kept = writes().next({}, BEGINS, {A: 5, B: 2}, latest=False).begun
    assert writes().next(kept, {A: 3, B: 0}, {A: 50, B: 1}, latest=False).stretches == (
        Stretch(A, 3, 5),
        Stretch(B, 0, 1),
    )


def test_an_offset_that_a_person_set_does_not_bring_a_number_back() -> None:
    first = writes().next({}, BEGINS, {A: 5, B: 2}, latest=False)
    kept = {**first.ended, ("t", 1): Committed(0)}
    after = writes().next(kept, BEGINS, {A: 5, B: 2}, latest=False)
    assert (after.stretches, after.version) == ((Stretch(B, 0, 2),), 2)
    kept = {**after.ended, ("t", 1): Committed(0)}
    assert writes().next(kept, BEGINS, {A: 5, B: 2}, latest=False).version == 3


def test_offsets_that_a_held_up_run_committed_late_are_repaired() -> None:
    run, before = writes(), writes().next({}, BEGINS, {A: 5, B: 0}, latest=False)
    write = run.next(before.ended, BEGINS, {A: 9, B: 0}, latest=False)
    run.done(write)
    assert run.next(before.ended, BEGINS, {A: 9, B: 0}, latest=False).stretches == ()
    assert run.repairs == {where: entry for where, entry in write.ended.items() if where != ("t", 1)}


def test_a_new_partition_begins_at_its_end_if_that_is_wanted() -> None:
    run = writes()
    assert run.next({}, BEGINS, {A: 5, B: 2}, latest=True).stretches == ()
    assert run.next({}, BEGINS, {A: 7, B: 2}, latest=True).stretches == (Stretch(A, 5, 7),)
