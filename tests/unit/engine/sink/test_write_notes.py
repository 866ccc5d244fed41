"""Notes of numbered writes in a group's offsets."""

from keelman.connect.records import TopicPartition
from keelman.engine.sink.write_notes import Unfinished, WriteNote, read_note, unfinished

ONE, TWO = "1" * 32, "2" * 32
A, B, C = (TopicPartition("t", number) for number in range(3))


def test_a_note_is_read_as_it_was_written_and_nothing_else_is() -> None:
    note = WriteNote(ONE, 7, 120)
    assert read_note(note.text) == note
    assert [read_note(text) for text in ("", "keelman.altered=1;", "keelman.write=xyz,1,2;")] == [None, None, None]
    assert len(note.text) < 100, "brokers take 4,096 bytes"


def test_without_notes_there_is_no_write() -> None:
    assert unfinished([(A, 5, ""), (B, -1, "another program's")]) == Unfinished("", 0, {})


def test_a_write_whose_offsets_have_moved_is_finished() -> None:
    assert unfinished([(A, 120, WriteNote(ONE, 7, 120).text)]) == Unfinished(ONE, 7, {})


def test_a_write_is_unfinished_where_its_offsets_have_not_moved() -> None:
    last, before = WriteNote(ONE, 7, 120).text, WriteNote(ONE, 6, 90).text
    kept = [(A, 100, last), (B, 90, before), (C, 3, "")]
    assert unfinished(kept) == Unfinished(ONE, 7, {A: 120})


def test_an_offset_that_a_person_set_leaves_its_write() -> None:
    last = WriteNote(ONE, 7, 120).text
    assert unfinished([(A, 0, ""), (B, 100, last)]) == Unfinished(ONE, 7, {B: 120})


def test_only_the_last_write_of_one_writer_counts() -> None:
    kept = [(A, 5, WriteNote(ONE, 3, 9).text), (B, 5, WriteNote(TWO, 4, 9).text)]
    assert unfinished(kept) == Unfinished(TWO, 4, {B: 9})
