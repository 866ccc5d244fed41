"""Changes to a source's file by others, in each state of the source.

Each line is copied once, and a warning names the lines that cannot be copied. docs/connectors.md has this table.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from keelman.connect.errors import RetriableConnectError
from keelman.connect.watches import Watch
from keelman.connectors.file import file_reader, former_files, late_files
from keelman.connectors.file.source import FileStreamSource
from support.connectors import touched
from support.connectors.follower import Follower, append, watched
from support.connectors.sunk_file import line, written
from support.connectors.touched import Touch, beside


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets all intervals to zero: a file need not be quiet, and every check is due at once."""
    monkeypatch.setattr(file_reader, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(file_reader, "COMPARE_SECONDS", 0.0)
    monkeypatch.setattr(file_reader, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(late_files, "LOOK_SECONDS", 0.0)


class Source:
    """A source whose file gets numbered lines."""

    def __init__(self, path: Path) -> None:
        self.follower = Follower(path)
        self.path = path
        self.written = 0

    def write(self, count: int, path: Path | None = None) -> None:
        """Appends the next lines."""
        append(path or self.path, written(self.written, self.written + count))
        self.written += count


def running(source: Source) -> None:
    """Runs, and has read all lines."""
    source.write(50)
    source.follower.all()


def behind(source: Source) -> None:
    """Runs, with lines that it has not read."""
    running(source)
    source.write(20)


def killed(source: Source) -> None:
    """Killed, as if it were stopped, with more lines written afterwards."""
    behind(source)
    source.follower.reader.close()


def parked(source: Source) -> None:
    """Parked, paused or stopped, with no line written since."""
    running(source)
    source.follower.reader.close()


STATES = (running, behind, parked, killed)


def rotate_twice(source: Source) -> None:
    touched.rotate(source.path)
    source.write(30)
    touched.rotate(source.path)


def rotate_four_times(source: Source) -> None:
    rotate_twice(source)
    source.write(30)
    rotate_twice(source)


def late_writes(source: Source) -> None:
    """The program keeps writing to the renamed file."""
    touched.rotate(source.path)
    source.write(30, beside(source.path, 1))


def compress(source: Source) -> None:
    touched.compress(source.path)


def compress_twice(source: Source) -> None:
    touched.compress(source.path)
    source.write(30)
    touched.compress(source.path)


def copytruncate_twice(source: Source) -> None:
    touched.copytruncate(source.path)
    source.write(30)
    touched.copytruncate(source.path)


def copy_away(source: Source) -> None:
    """A user makes a backup under the name of a rotated file."""
    shutil.copy(source.path, source.path.with_name(f"{source.path.name}.20261128"))


def of(touch: Touch) -> Callable[[Source], None]:
    def do(source: Source) -> None:
        touch(source.path)

    do.__name__ = touch.__name__
    return do


CELLS = [
    *map(of, (touched.leave, touched.rename, touched.rotate, touched.copytruncate)),
    rotate_twice,
    rotate_four_times,
    late_writes,
    compress,
    compress_twice,
    copytruncate_twice,
    copy_away,
]


@pytest.mark.parametrize("touch", CELLS, ids=lambda touch: touch.__name__)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_each_line_is_copied_once_whatever_somebody_does_to_the_file(
    tmp_path: Path, state: Callable[[Source], None], touch: Callable[[Source], None]
) -> None:
    source = Source(tmp_path / "in.log")
    state(source)
    touch(source)
    if state in (killed, parked):
        source.follower.restart()
    source.write(40)
    source.follower.all()
    touched.rotate(source.path)
    source.write(10)
    got = source.follower.all()
    source.follower.reader.close()
    assert sorted(got) == [line(n) for n in range(source.written)]
    if touch is not late_writes:
        assert got == sorted(got), "not in order"


TAKEN_AWAY = (touched.remove, touched.truncate, touched.rewrite, touched.replace, touched.restore)


@pytest.mark.parametrize("touch", TAKEN_AWAY, ids=lambda touch: touch.__name__)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_what_somebody_took_away_is_told_and_what_came_in_its_place_is_copied(
    tmp_path: Path, state: Callable[[Source], None], touch: Touch
) -> None:
    source = Source(tmp_path / "in.log")
    state(source)
    size = source.path.stat().st_size
    with capture_logs() as logged:
        touch(source.path)
        if state in (killed, parked):
            source.follower.restart()
        before = len(source.follower.lines)
        source.follower.all()
        source.write(40)
        got = source.follower.all()
        source.follower.reader.close()
    assert got[-40:] == [line(n) for n in range(source.written - 40, source.written)]
    new = source.path.read_bytes().splitlines()
    assert got[len(got) - len(new) :] == new, "the present content of the file is copied from its first byte"
    # A running source still reads the unread lines of a removed or replaced file.
    stored = state is behind and touch in (touched.remove, touched.replace, touched.restore)
    assert len(got) - len(new) - before == (20 if stored else 0)
    warned = [entry for entry in logged if entry["log_level"] == "warning" and entry["event"] != "file_missing"]
    if not (state in (running, behind) and touch in (touched.remove, touched.replace, touched.restore)):
        assert warned
        assert size


@pytest.fixture
def open_file(tmp_path: Path) -> Iterator[Callable[[Path], int]]:
    """Opens a file as the program that writes it."""
    with contextlib.ExitStack() as stack:

        def opened(path: Path) -> int:
            return stack.enter_context(path.open("ab", buffering=0)).fileno()

        yield opened


@pytest.mark.parametrize("restarted", [False, True])
def test_a_renamed_file_is_read_for_as_long_as_somebody_has_it_open(
    tmp_path: Path, open_file: Callable[[Path], int], *, restarted: bool
) -> None:
    source = Source(tmp_path / "in.log")
    running(source)
    writer = open_file(source.path)
    touched.rotate(source.path)
    for _ in range(3):
        source.write(5)
        source.follower.all()
        os.write(writer, written(source.written, source.written + 5))
        source.written += 5
        if restarted:
            source.follower.restart()
        assert sorted(source.follower.all()) == [line(n) for n in range(source.written)]
        assert source.follower.reader.watch() is None, "no other reader would read the renamed file"
    assert "late" in (source.follower.offset or {})
    os.write(writer, b"half a line")
    source.follower.all()
    assert b"half a line" not in source.follower.lines
    os.write(writer, b", and its end\nand another half")
    source.follower.all()
    assert source.follower.lines[-1] == b"half a line, and its end"
    assert source.follower.reader.left() == len(b"and another half")
    os.close(os.dup(writer))
    os.dup2(os.open(os.devnull, os.O_WRONLY), writer)  # the program closes it
    source.follower.all()
    assert source.follower.lines[-1] == b"and another half"
    source.write(1)
    source.follower.all()
    assert "late" not in (source.follower.offset or {})
    assert source.follower.reader.watch() is not None


def test_of_many_equal_lines_those_between_the_ends_are_seen_to_change(tmp_path: Path) -> None:
    """Writes 53 lines in place of 52; the first and the last are as before."""
    path = tmp_path / "in.log"
    follower = Follower(path)
    ends = b"\n".join([b"the same line"] * 30) + b"\n"
    append(path, ends + written(0, 10) + ends)
    follower.all()
    follower.lines = []
    path.write_bytes(ends + written(10, 20) + ends + b"one more\n")
    assert follower.all() == path.read_bytes().splitlines()
    follower.lines = []
    path.write_bytes(path.read_bytes().replace(line(15), line(25)))  # of the same length
    assert follower.reader.glance()
    assert follower.all() == path.read_bytes().splitlines()
    follower.lines = []
    follower.restart()
    assert follower.all() == []
    follower.reader.close()


def test_what_is_not_unpacked_here_is_named(tmp_path: Path) -> None:
    source = Source(tmp_path / "in.log")
    killed(source)
    old = source.path.rename(tmp_path / "in.log.1")
    (tmp_path / "in.log.2.zst").write_bytes(b"compressed")
    old.unlink()
    source.path.write_bytes(b"")
    source.follower.restart()
    with capture_logs() as logged:
        source.write(5)
        assert source.follower.all()[50:] == [line(n) for n in range(70, 75)]
    events = {entry["event"]: entry for entry in logged if entry["log_level"] == "warning"}
    assert events["file_passed_over"]["passed"] == str(tmp_path / "in.log.2.zst")
    assert events["file_passed_over"]["bytes"] == 10
    event = events.get("file_replaced") or events["file_truncated"]  # the new file may have the inode of the old one
    assert event["read_to"] == 50 * len(written(0, 1))


def test_files_that_were_rotated_before_are_not_read_again(tmp_path: Path) -> None:
    source = Source(tmp_path / "in.log")
    for _ in range(4):
        running(source)
        touched.compress(source.path)
        source.follower.all()
    source.follower.reader.close()
    source.follower.restart()
    running(source)
    assert source.follower.lines == [line(n) for n in range(source.written)]


@pytest.mark.parametrize(
    "name", ["in.log.1", "in.log-20261128", "in.log.2026-11-28-10", "in-2026-11-28.log", "in.1.log"]
)
def test_files_between_are_known_by_the_names_that_rotation_gives(tmp_path: Path, name: str) -> None:
    source = Source(tmp_path / "in.log")
    killed(source)
    source.path.rename(tmp_path / "in.log.0")
    source.write(10)
    source.path.rename(tmp_path / name)
    append(tmp_path / "in.log.state", b"of another program\n")
    source.write(10)
    source.follower.restart()
    assert source.follower.all() == [line(n) for n in range(90)]


def test_a_task_that_rests_is_woken_by_a_rewrite_of_the_same_length(tmp_path: Path) -> None:
    source = Source(tmp_path / "in.log")
    running(source)
    config = {"file": str(source.path), "topic": "t"}

    def resting() -> Watch | None:
        return FileStreamSource.resting(config, lambda _: source.follower.offset)

    assert resting() == watched(source.path, source.path.stat().st_size)
    touched.rewrite(source.path)
    assert resting() != watched(source.path, source.path.stat().st_size)
    source.follower.offset = {**(source.follower.offset or {}), "late": "1:2:3:4:5"}
    assert resting() is None, "only a reader looks at former files"


def test_a_mark_of_an_older_version_still_finds_its_file(tmp_path: Path) -> None:
    source = Source(tmp_path / "in.log")
    running(source)
    offset = source.follower.offset or {}
    inode = source.path.stat().st_ino
    descriptor = os.open(source.path, os.O_RDONLY)
    edges = former_files.digest(former_files.read_edges(descriptor, offset["position"]))
    os.close(descriptor)
    source.follower.offset = {"position": offset["position"], "mark": f"{inode}:{offset['position']}:{edges}"}
    touched.rotate(source.path)
    source.write(10)
    source.follower.restart()
    assert source.follower.all() == [line(n) for n in range(60)]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_tried_again(tmp_path: Path) -> None:
    source = Source(tmp_path / "in.log")
    killed(source)
    touched.chmod(source.path)
    source.path.chmod(0)
    source.follower.restart()
    with pytest.raises(RetriableConnectError, match="Permission denied"):
        source.follower.read()
