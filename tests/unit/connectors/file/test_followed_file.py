"""A file that is renamed, truncated, copied or replaced loses no line and repeats none."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from keelman.connectors.file import file_reader
from keelman.connectors.file.source import FileStreamSource
from support.connectors import touched
from support.connectors.follower import Follower, append, known, watched


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
    monkeypatch.setattr(file_reader.time, "monotonic", lambda: now)
    append(follower.path, b"one\n")
    follower.all()
    old = follower.path.rename(follower.path.with_name("old"))
    assert follower.reader.watch() is None  # its writer may still have it open, and only this reader would notice
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
    assert follower.reader.watch() == watched(follower.path, 4)


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
    config, present = {"file": f" {path} ", "topic": "t"}, dict[str, Any]()

    def offset(partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return present or None if partition == {"filename": str(path)} else None

    assert FileStreamSource.resting(config, offset) is None
    reader = FileStreamSource.open_reader(config, offset)
    batch = reader.read()
    assert batch is not None
    present.update(batch.offsets[0][1] or {})
    assert FileStreamSource.resting(config, offset) == watched(path, 8)
    present["position"] = 4
    assert FileStreamSource.resting(config, offset) is None, "another writer has set it since: its mark has no meaning"
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
    assert 1 <= looks <= 5
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


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_rotated_between_two_reads_each_line_comes_once(tmp_path: Path, seed: int) -> None:
    """Several rotations by one way without a read between them, compression, and restarts at random."""
    dice = random.Random(seed)
    rotate = dice.choice([touched.rotate, touched.copytruncate, touched.compress])
    follower, written = Follower(tmp_path / "in"), 0
    for _ in range(120):
        step = dice.choice(["write"] * 6 + ["read"] * 2 + ["rotate"] * 3 + ["crash"])
        if step == "write":
            count = dice.randrange(20, 60)
            append(follower.path, b"".join(b"line %d\n" % number for number in range(written, written + count)))
            written += count
        elif step == "read":
            follower.all()
        elif step == "crash":
            follower.restart()
        elif follower.path.exists() and (follower.offset is not None):
            rotate(follower.path)
    follower.restart()
    for _ in range(20):
        follower.all()  # for each empty file on the way a read returns nothing
    assert follower.lines == [b"line %d" % number for number in range(written)]
    follower.reader.close()
