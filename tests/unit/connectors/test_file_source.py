"""The file source without Kafka: lines, positions, and files that are renamed, truncated, copied and replaced."""

import os
import random
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.watches import FileWatch
from keelman.connectors.file import source as file_source
from keelman.connectors.file.followed_file import MARK_BYTES, checked_position, split_lines
from keelman.connectors.file.source import FileReader, FileStreamSource


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


class Follower:
    """A reader under test, what it has read, and the offset that would be committed."""

    def __init__(self, path: Path, **config: str) -> None:
        self.path = path
        self.lines: list[bytes] = []
        self.passed = 0
        self.offset: Mapping[str, Any] | None = None
        self._config = {"file": str(path), "topic": "t", **config}
        self.reader = self._open()

    def _open(self) -> FileReader:
        reader = FileStreamSource.open_reader(self._config, lambda _: self.offset)
        assert isinstance(reader, FileReader)
        return reader

    def read(self) -> int:
        """One read; gives how many lines came."""
        batch = self.reader.read()
        if batch is None:
            return 0
        ((partition, self.offset),) = batch.offsets
        assert partition == {"filename": str(self.path)}
        self.lines += batch.values.values
        self.passed += batch.passed or 0
        return len(batch.values.values)

    def all(self) -> list[bytes]:
        """Reads until nothing more comes, thrice: a change of files takes reads that give nothing."""
        idle = 0
        while idle < 3:
            idle = 0 if self.read() else idle + 1
        return self.lines

    def restart(self) -> None:
        """As after a crash or a stop: only the offset is left."""
        self.reader.close()
        self.reader = self._open()


def test_the_records_of_a_read_carry_its_time(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "in")
    follower.path.write_bytes(b"one\ntwo\n")
    begun = time.time_ns() // 1_000_000
    batch = follower.reader.read()
    assert batch is not None
    assert batch.timestamps_ms is not None
    assert len(batch.timestamps_ms) == 2
    assert begun <= batch.timestamps_ms[0] == batch.timestamps_ms[1] <= time.time_ns() // 1_000_000  # type: ignore[operator]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A renamed file need not be quiet before it is left."""
    monkeypatch.setattr(file_source, "QUIET_SECONDS", 0.0)
    return iter(())


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    made = Follower(tmp_path / "in.log")
    yield made
    made.reader.close()


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


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
    assert follower.reader.watch() == FileWatch(str(path), 6, path.stat().st_ino)
    append(path, b"o\r")
    assert follower.reader.watch() is None
    assert follower.all() == [b"one"]
    assert follower.reader.watch() == FileWatch(str(path), 8, path.stat().st_ino)
    append(path, b"\n")
    assert follower.all() == [b"one", b"two"]
    assert (follower.offset["position"], follower.passed) == (9, 9)


def test_a_batch_says_when_the_file_was_read_to_its_end(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_source, "BLOCK_BYTES", 8)
    append(follower.path, b"one\ntwo\nthree\n")
    batches = [follower.reader.read(), follower.reader.read()]
    assert [(b.values.values, b.short) for b in batches if b] == [([b"one", b"two"], False), ([b"three"], True)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_line_longer_than_a_block(follower: Follower, end: bytes) -> None:
    append(follower.path, b"x" * 5_000_000 + end + b"end" + end + b"more")
    assert [len(line) for line in follower.all()] == [5_000_000, 3]


def test_a_last_line_that_only_grows_is_read_once(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_source, "BLOCK_BYTES", 64)
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
    assert read < 15_000  # the 5000 bytes some few times, not 50 times
    append(follower.path, b"\r\nlast\n")
    assert follower.all() == [b"first", b"y" * 5000, b"last"]


def test_a_line_without_end_is_refused_in_the_end(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_source, "BLOCK_BYTES", 16)
    monkeypatch.setattr(file_source, "LONGEST_LINE_BYTES", 64)
    append(follower.path, b"z" * 200)
    with pytest.raises(ConnectError, match="line at byte 0 is over 64 bytes"):
        follower.all()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_no_more_lines_than_asked_for(tmp_path: Path, end: bytes) -> None:
    wanted = [b"%d" % n * (n % 7) for n in range(1000)]
    (tmp_path / "in").write_bytes(end.join(wanted) + end + b"rest")
    follower = Follower(tmp_path / "in", **{"batch.size": "30"})
    assert follower.read() == 30
    follower.reader.most_records = 7
    assert follower.read() == 7
    follower.restart()
    assert follower.read() == 30
    follower.reader.most_records = None
    assert follower.all() == wanted
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


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("stopped", [False, True])
def test_a_renamed_file_is_read_to_its_end_first(follower: Follower, *, stopped: bool) -> None:
    path = follower.path
    append(path, b"one\ntwo\n")
    follower.all()
    append(path, b"three\nfour")
    old = path.rename(path.with_name("in.log.1"))
    if stopped:
        follower.restart()
    assert follower.all() == [b"one", b"two", b"three"]
    append(old, b"!\nfive")
    append(path, b"six\nseven\n")
    if stopped:
        follower.restart()
    assert follower.all() == [b"one", b"two", b"three", b"four!", b"five", b"six", b"seven"]
    follower.restart()
    append(path, b"eight\n")
    assert follower.all()[6:] == [b"seven", b"eight"]


def test_a_renamed_file_is_left_only_once_it_is_quiet(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(file_source.time, "monotonic", lambda: now)
    append(follower.path, b"one\n")
    follower.all()
    old = follower.path.rename(follower.path.with_name("old"))
    assert follower.reader.watch() is None  # its writer may still have it open, and nobody else would look
    append(follower.path, b"new\n")
    for text in (b"two\n", b"three\n"):
        now += 0.9
        assert follower.all()[-1:] != [b"new"]
        append(old, text)
        follower.all()
    assert follower.reader.watch() is None
    assert follower.reader.left() == 4
    now += 1.1
    assert follower.all() == [b"one", b"two", b"three", b"new"]
    assert follower.reader.watch() == FileWatch(str(follower.path), 4, follower.path.stat().st_ino)


@pytest.mark.usefixtures("at_once")
def test_the_target_of_a_link_changes(follower: Follower, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    first, second = tmp_path / "data" / "1", tmp_path / "data" / "2"
    append(first, b"one\ntwo\n")
    append(second, b"three\n")
    follower.path.symlink_to(first)
    follower.reader.most_records = 1
    assert follower.read() == 1
    follower.path.unlink()
    follower.path.symlink_to(second)
    follower.restart()
    assert follower.all() == [b"one", b"two", b"three"]


def test_a_task_rests_on_the_file_that_its_offset_speaks_of(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"one\ntwo\n")
    config, known = {"file": f" {path} ", "topic": "t"}, dict[str, Any]()

    def offset(partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return known or None if partition == {"filename": str(path)} else None

    assert FileStreamSource.resting(config, offset) is None
    reader = FileStreamSource.open_reader(config, offset)
    batch = reader.read()
    assert batch is not None
    known.update(batch.offsets[0][1] or {})
    assert FileStreamSource.resting(config, offset) == FileWatch(str(path), 8, path.stat().st_ino)
    known["position"] = 4
    assert FileStreamSource.resting(config, offset) is None, "somebody has set it since: its mark says nothing"
    assert FileStreamSource.resting({"topic": "t"}, offset) is None
    reader.close()


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("grown", [b"b\n", b"a new line and another, longer than all that there was before\nb\n"])
def test_a_truncated_file_begins_anew(follower: Follower, grown: bytes, *, stopped: bool) -> None:
    append(follower.path, b"one\ntwo\nthree\nand a part")
    follower.all()
    follower.path.write_bytes(grown)  # the same inode, shorter or longer than the position
    if stopped:
        follower.restart()
    assert follower.all() == [b"one", b"two", b"three", *grown.splitlines()]


def test_a_part_of_a_line_is_taken_back(follower: Follower) -> None:
    append(follower.path, b"one\nand a long part")
    assert follower.all() == [b"one"]
    os.truncate(follower.path, 4)
    append(follower.path, b"two\n")
    assert follower.all() == [b"one", b"two"]


def test_a_missing_file_is_looked_for_elsewhere_now_and_then(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(follower.path, b"one\n")
    follower.all()
    follower.path.unlink()
    follower.restart()
    looks = 0
    scandir = os.scandir

    def counted(folder: Path) -> Any:
        nonlocal looks
        looks += 1
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", counted)
    for _ in range(50):
        assert follower.read() == 0
    assert 1 <= looks <= 3
    append(follower.path, b"new\n")
    assert follower.read() == 1


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("stopped", [False, True])
def test_a_file_that_was_copied_away_and_truncated_loses_nothing(follower: Follower, *, stopped: bool) -> None:
    path = follower.path
    lines = [b"line %d" % n for n in range(100)]
    append(path, b"\n".join(lines[:90]) + b"\n")
    follower.all()
    append(path, b"\n".join(lines[90:]) + b"\n")
    shutil.copy(path, path.with_name("in.log.1"))
    path.write_bytes(b"after\n")
    if stopped:
        follower.restart()
    assert follower.all() == [*lines, b"after"]


def test_a_file_replaced_by_its_own_copy_goes_on_and_by_a_stranger_begins(follower: Follower) -> None:
    append(follower.path, b"one\ntwo\n")
    follower.all()
    for content, lines in (
        (b"one\ntwo\nthree\n", [b"three"]),
        (b"o\n", [b"o"]),
        (b"other\nlines\n", [b"other", b"lines"]),
    ):
        new = follower.path.with_name("new")
        new.write_bytes(content)
        follower.reader.close()
        new.replace(follower.path)
        follower.restart()
        follower.lines = []
        assert follower.all() == lines


def test_offsets_of_connect_and_of_people_count_as_they_are(follower: Follower) -> None:
    append(follower.path, b"one\ntwo\nthree\n")
    follower.offset = {"position": 4}
    follower.restart()
    assert follower.all() == [b"two", b"three"]
    assert follower.offset["mark"]
    follower.offset = {**follower.offset, "position": 8}  # as somebody edits what the REST API shows
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


def known(follower: Follower) -> bool:
    """Whether enough of the present file was read to find it again: two files back, there is nothing to know it by."""
    follower.all()
    inode, position, _ = (follower.offset or {"mark": "0:0:"})["mark"].split(":")
    return int(inode) == follower.path.stat().st_ino and int(position) > MARK_BYTES


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_each_line_comes_once_and_in_order(tmp_path: Path, seed: int) -> None:
    """Growth by pieces, rotation, copies and crashes at random. Lines are numbered, so no two files look the same."""
    dice = random.Random(seed)
    follower = Follower(tmp_path / "in")
    written = renamed = 0
    for _ in range(200):
        step = dice.choice(["write"] * 6 + ["read"] * 4 + ["rotate", "copy", "crash", "limit"])
        if step == "write":
            count = dice.randrange(1, 40)
            append(
                follower.path,
                b"".join(b"%d%s" % (n, dice.choice([b"\n", b"\r\n"])) for n in range(written, written + count)),
            )
            written += count
        elif step == "read":
            follower.read()
        elif step == "limit":
            follower.reader.most_records = dice.choice([None, 1, 10])
        elif step == "crash":
            follower.restart()
        elif follower.path.exists() and known(follower):
            renamed += 1
            append(follower.path, b"%d\n" % written)
            written += 1
            if step == "rotate":
                follower.path.rename(tmp_path / f"in.{renamed}")
                follower.path.write_bytes(b"")
            else:
                shutil.copy(follower.path, tmp_path / f"in.{renamed}")
                os.truncate(follower.path, 0)
    follower.restart()
    assert follower.all() == [b"%d" % n for n in range(written)]
    follower.reader.close()


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
