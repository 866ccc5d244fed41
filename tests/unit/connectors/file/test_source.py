"""The file source without Kafka: lines, the extent of a read, and offsets that Connect or users wrote."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.watches import FileWatch
from keelman.connectors.file import file_reader
from keelman.connectors.file.file_lines import split_lines
from keelman.connectors.file.file_reader import FileReader
from keelman.connectors.file.followed_file import checked_position
from keelman.connectors.file.source import FileStreamSource
from support.connectors.follower import Follower, append, watched


@pytest.mark.parametrize(
    ("block", "ended", "taken"),
    [
        (b"", [], 0),
        (b"half", [], 0),
        (b"a\nb", [b"a"], 2),
        (b"a\r\nb\rc\n\n", [b"a", b"b", b"c", b""], 8),
        (b"a\r", [], 0),
        (b"a\n\r", [b"a"], 2),
        (b"\x0b\x1c\xc2\x85\xe2\x80\xa8\n", ["\x0b\x1c\x85\u2028".encode()], 8),
        (b"\xff\n", ["\ufffd".encode()], 2),
        (b"\xed\xa0\x80x\xed\xbf\n", ["\ufffdx\ufffd".encode()], 7),
    ],
)
def test_lines_end_as_in_java(block: bytes, ended: list[bytes], taken: int) -> None:
    assert split_lines(block) == (ended, taken)


def test_the_records_of_a_read_carry_its_time(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "in")
    follower.path.write_bytes(b"one\ntwo\n")
    begun = time.time_ns() // 1_000_000
    batch = follower.reader.read()
    assert batch is not None
    assert batch.timestamps_ms is not None
    assert len(batch.timestamps_ms) == 2
    assert begun <= batch.timestamps_ms[0] == batch.timestamps_ms[1] <= time.time_ns() // 1_000_000  # type: ignore[operator]


def test_a_reader_waits_for_its_file_and_for_line_ends(follower: Follower) -> None:
    path = follower.path
    assert follower.read() == 0
    assert follower.reader.waits_for() == f"waits for the file {path}"
    assert follower.reader.watch() == FileWatch(str(path), 0, 0)
    append(path, b"one\ntw")
    assert follower.reader.watch() is None
    assert follower.all() == [b"one"]
    assert follower.reader.waits_for() == ""
    assert follower.offset is not None
    assert (follower.offset["position"], follower.reader.left()) == (4, 2)
    assert follower.reader.watch() == watched(path, 6)
    append(path, b"o\r")
    assert follower.reader.watch() is None
    assert follower.all() == [b"one"]
    assert follower.reader.watch() == watched(path, 8)
    append(path, b"\n")
    assert follower.all() == [b"one", b"two"]
    assert (follower.offset["position"], follower.passed) == (9, 9)


def test_a_batch_says_when_the_file_was_read_to_its_end(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reader, "BLOCK_BYTES", 8)
    append(follower.path, b"one\ntwo\nthree\n")
    batches = [follower.reader.read(), follower.reader.read()]
    assert [(b.values.values, b.short) for b in batches if b] == [([b"one", b"two"], False), ([b"three"], True)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_line_longer_than_a_block(follower: Follower, end: bytes) -> None:
    append(follower.path, b"x" * 5_000_000 + end + b"end" + end + b"more")
    assert [len(line) for line in follower.all()] == [5_000_000, 3]


def test_a_last_line_that_only_grows_is_read_once(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reader, "BLOCK_BYTES", 64)
    read = 0
    pread = os.pread

    def counted(descriptor: int, length: int, position: int) -> bytes:
        nonlocal read
        block = pread(descriptor, length, position)
        read += len(block)
        return block

    append(follower.path, b"first\n")
    follower.all()
    monkeypatch.setattr(os, "pread", counted)
    for _ in range(100):
        append(follower.path, b"y" * 50)
        assert follower.all() == [b"first"]
    assert read < 15_000  # the 5000 bytes a few times, not 50 times
    append(follower.path, b"\r\nlast\n")
    assert follower.all() == [b"first", b"y" * 5000, b"last"]


def test_a_line_without_end_is_refused_in_the_end(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reader, "BLOCK_BYTES", 16)
    monkeypatch.setattr(file_reader, "LONGEST_LINE_BYTES", 64)
    append(follower.path, b"z" * 200)
    with pytest.raises(ConnectError, match="line at byte 0 is over 64 bytes"):
        follower.all()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_no_more_lines_than_asked_for(tmp_path: Path, end: bytes) -> None:
    expected = [b"%d" % n * (n % 7) for n in range(1000)]
    (tmp_path / "in").write_bytes(end.join(expected) + end + b"rest")
    follower = Follower(tmp_path / "in", **{"batch.size": "30"})
    assert follower.read() == 30
    follower.reader.most_records = 7
    assert follower.read() == 7
    follower.restart()
    assert follower.read() == 30
    follower.reader.most_records = None
    assert follower.all() == expected
    follower.reader.close()


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="not a regular file"):
        FileReader(str(tmp_path), "t").read()
    (tmp_path / "in").write_bytes(b"a\n")
    with pytest.raises(RetriableConnectError, match="Not a directory"):
        FileReader(str(tmp_path / "in" / "in"), "t").read()
    for bad in ("5", -1, 1.5, True):
        with pytest.raises(ConnectError, match="position"):
            checked_position({"position": bad})
    reader = FileStreamSource.open_reader({"topic": "t"}, lambda _: None)
    assert reader.read() is None
    assert list(reader.partitions()) == []


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_tried_again(follower: Follower) -> None:
    append(follower.path, b"a\n")
    follower.path.chmod(0)
    with pytest.raises(RetriableConnectError, match="Permission denied"):
        follower.read()
    follower.path.chmod(0o600)
    assert follower.all() == [b"a"]


def test_offsets_of_connect_and_of_people_count_as_they_are(follower: Follower) -> None:
    append(follower.path, b"one\ntwo\nthree\n")
    follower.offset = {"position": 4}
    follower.restart()
    assert follower.all() == [b"two", b"three"]
    assert follower.offset["mark"]
    follower.offset = {**follower.offset, "position": 8}  # as a user edits the offset that the REST API shows
    follower.restart()
    assert follower.all()[2:] == [b"three"]
    follower.reader.close()
    follower.path.write_bytes(b"ONE\ntwo\nthree\n")
    follower.offset = {**follower.offset, "position": 8}
    follower.restart()
    assert follower.all()[3:] == [b"three"]
    follower.lines = [b""] * 3
    follower.path.write_bytes(b"one\ntwo\nthree\n")
    follower.offset = {"position": 400}
    follower.restart()
    assert follower.all()[3:] == [b"one", b"two", b"three"]


def test_a_glance_tells_growth_without_reading_and_cannot_tell_while_another_file_takes_over(tmp_path):
    file = tmp_path / "in"
    reader = FileReader(str(file), "t")
    assert reader.glance() is None
    file.write_bytes(b"a\nb")
    assert reader.read() is not None
    assert reader.read() is None
    assert reader.glance() is False
    with file.open("ab") as more:
        more.write(b"\n")
    assert reader.glance() is True
    assert reader.read() is not None
    assert reader.glance() is False
    file.rename(tmp_path / "in.1")
    file.write_bytes(b"c\n")
    assert reader.read() is None
    assert reader.glance() is None
    reader.close()
    assert reader.glance() is None
