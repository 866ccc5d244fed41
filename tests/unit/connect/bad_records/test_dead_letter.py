"""Dead letters: their headers are Connect's, and a written letter is read back."""

from __future__ import annotations

from keelman.connect.bad_records import dead_letter as letters
from keelman.connect.bad_records.dead_letter import RecordOrigin, Why, context_headers, read_letter

WHY = Why("VALUE_CONVERTER", "org.apache.kafka.connect.json.JsonConverter", "a.B", "no such thing", "a.B: no\n\tat x")


def test_a_sinks_letter_is_read_back_without_our_headers():
    headers = [("mine", b"1"), *context_headers(RecordOrigin("t", 3, 41), WHY, connector="c", task=2)]
    read = read_letter(b"k", b"v", headers)
    assert (read.key, read.value, list(read.headers)) == (b"k", b"v", [("mine", b"1")])
    assert (read.whence, read.why, read.connector, read.task) == (RecordOrigin("t", 3, 41), WHY, "c", 2)
    assert (read.key_format, read.value_format, read.record_bytes) == ("bytes", "bytes", None)
    assert [name for name, _ in headers[1:]] == list(letters.CONNECTS)


def test_a_sources_letter_tells_its_source_position_and_formats():
    whence = RecordOrigin("t", source_partition={"filename": "ä"}, source_offset={"position": 12})
    headers = context_headers(whence, WHY, connector="c", task=0, value_format="json", record_bytes=7)
    assert dict(headers)[letters.SOURCE_PARTITION] == '{"filename":"ä"}'.encode()
    read = read_letter(None, b"{}", headers)
    assert (read.whence, read.value_format, read.key_format, read.record_bytes) == (whence, "json", "bytes", 7)


def test_a_sources_letter_tells_the_partition_that_its_record_was_for():
    headers = context_headers(RecordOrigin("t"), WHY, connector="c", task=0, target_partition=3)
    read = read_letter(None, b"v", [("own", b"1"), *headers])
    assert (read.target_partition, list(read.headers), read.whence) == (3, [("own", b"1")], RecordOrigin("t"))
    sinks = context_headers(RecordOrigin("t", 1, 2), WHY, connector="c", task=0, target_partition=3)
    assert read_letter(None, None, sinks).target_partition is None


def test_only_the_last_failures_headers_are_taken_off():
    first = context_headers(RecordOrigin("a", 0, 1), WHY, connector="c", task=0, record_bytes=9)
    again = [*first, *context_headers(RecordOrigin("dead", 0, 5), WHY, connector="d", task=1)]
    read = read_letter(None, None, again)
    assert read.whence == RecordOrigin("dead", 0, 5)
    assert list(read.headers) == first
    assert read_letter(None, None, read.headers).whence == RecordOrigin("a", 0, 1)


def test_a_letter_without_headers_or_with_senseless_ones_is_read_all_the_same():
    assert read_letter(b"k", None, None).whence is None
    odd = [(letters.TOPIC, None), (letters.OFFSET, b"\xff"), (letters.SOURCE_OFFSET, b"[" * 100_000)]
    assert (read_letter(b"k", None, odd).whence, read_letter(b"k", None, odd).headers) == (None, [])
    assert read_letter(None, None, [(letters.MESSAGE, None)]).why is None
