"""Changes to a sink's file by others, in each state of the sink.

Each record is there once, and no committed record disappears without a warning. docs/connectors.md has this table.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.records import Column, SinkBatch
from keelman.connectors.file import appending
from keelman.connectors.file.sink import FileStreamSink
from keelman.connectors.file.torn_tail import kept_copies
from keelman.engine.sink.exactly_once.journal import Entry, Journal
from support.connectors import touched
from support.connectors.sunk_file import STRANGE, SunkFile, line, written
from support.connectors.touched import Touch

TOTAL = 600


def idle(sink: SunkFile) -> None:
    """Runs, and has committed all records. A paused or parked sink that resumes at once behaves the same."""
    sink.copy(100)


def writing(sink: SunkFile) -> None:
    """Runs, in the middle of a transaction."""
    sink.copy(100)
    sink.write(200)


def stopped(sink: SunkFile) -> None:
    """Drained: stopped, paused or parked."""
    sink.copy(100)
    sink.stop()


def killed(sink: SunkFile) -> None:
    """Killed in the middle of a transaction."""
    sink.copy(100)
    sink.write(200)
    sink.kill()


def killed_later(sink: SunkFile) -> None:
    """Changed while it runs in the middle of a transaction, then killed."""
    sink.copy(100)
    sink.write(200)


def killed_at_once(sink: SunkFile) -> None:
    """Killed in the middle of its first transaction."""
    sink.write(100)
    sink.kill()


STATES = (idle, writing, stopped, killed, killed_later, killed_at_once)
ONCE = "once"
"""Each record is once in the file and those beside it."""
GONE = "gone"
"""Committed records disappeared with a part of the file that was removed; a warning tells.

All others are there once.
"""
TWICE = "twice"
"""Uncommitted records may be there twice, and a warning tells; none is lost."""

CELLS: dict[Touch, dict[Callable[[SunkFile], None], str]] = {
    touched.leave: {},
    touched.append: {},
    touched.rename: {},
    touched.rotate: {},
    touched.rotate_twice: {},
    touched.rotate_away: {killed: TWICE, killed_later: TWICE, killed_at_once: TWICE},
    touched.compress: {writing: TWICE, killed: TWICE, killed_later: TWICE, killed_at_once: TWICE},
    touched.copytruncate: {},
    touched.move_to_another_file_system: {writing: TWICE, killed: TWICE, killed_later: TWICE, killed_at_once: TWICE},
    touched.truncate: dict.fromkeys(STATES, GONE),
    touched.remove: dict.fromkeys(STATES, GONE),
    touched.rewrite: dict.fromkeys(STATES, GONE),
    touched.replace: dict.fromkeys(STATES, GONE),
    touched.restore: {**dict.fromkeys(STATES, GONE), killed_at_once: TWICE},
}


@pytest.mark.parametrize("touch", CELLS, ids=lambda touch: touch.__name__)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_whatever_somebody_does_to_the_file(tmp_path: Path, state: Callable[[SunkFile], None], touch: Touch) -> None:
    sink = SunkFile(tmp_path / "out")
    with capture_logs() as logged:
        state(sink)
        committed = sink.group or 0
        strange = STRANGE * 2 if touch is touched.rotate_twice else b""
        touch(sink.path)
        if state is killed_later:
            sink.write(300)
            sink.kill()
        sink.copy(400)
        sink.copy(TOTAL)
        sink.kill()
    numbers, others = sink.found()
    warned = [entry for entry in logged if entry["log_level"] == "warning"]
    expected = CELLS[touch].get(state, ONCE)
    assert set(others) <= {STRANGE, touched.FILLER}, "the file has a torn line, or two lines in one"
    assert strange.count(STRANGE) // 2 <= len(others)
    if expected == GONE:
        assert set(range(committed, TOTAL)) <= set(numbers)
        assert len(numbers) == len(set(numbers))
        assert warned
    elif expected == TWICE:
        assert set(numbers) == set(range(TOTAL))
        assert warned
    else:
        assert numbers == list(range(TOTAL))
    if touch is touched.append:
        assert others == [STRANGE]


def test_what_is_cut_is_kept_beside_the_file_and_told(tmp_path: Path) -> None:
    sink = SunkFile(tmp_path / "out")
    killed(sink)
    torn = written(100, 200)
    touched.append(sink.path)
    with capture_logs() as logged:
        sink.start()
    sink.copy(200)
    (event,) = [entry for entry in logged if entry["event"] == "torn_tail_cut"]
    assert event["log_level"] == "warning"
    assert event["bytes"] == len(torn)
    assert Path(event["kept"]).read_bytes() == torn
    assert sink.found() == (list(range(200)), [STRANGE])


def test_only_a_few_of_what_was_cut_are_kept(tmp_path: Path) -> None:
    sink = SunkFile(tmp_path / "out")
    for _ in range(13):
        sink.write(20)
        sink.kill()
    sink.copy(30)
    assert sink.found() == (list(range(30)), [])
    assert len(kept_copies(sink.path)) == 10


@pytest.mark.parametrize("behind", [b"", STRANGE, STRANGE * 1000])
@pytest.mark.parametrize("torn_at", [4096, 8192])
def test_a_write_that_was_torn_at_a_page_is_known_from_what_others_wrote(
    tmp_path: Path, torn_at: int, behind: bytes
) -> None:
    sink = SunkFile(tmp_path / "out")
    sink.copy(15)
    sink.start().write(SinkBatch(Column([line(n) for n in range(15, 75)], utf8=True)))
    sink.kill()
    os.truncate(sink.path, torn_at)
    with sink.path.open("ab") as file:
        file.write(behind)
    sink.copy(100)
    assert sink.found() == (list(range(100)), behind.splitlines(keepends=True))


def test_strangers_between_the_writes_of_a_transaction_stay(tmp_path: Path) -> None:
    sink = SunkFile(tmp_path / "out")
    sink.copy(10)
    for to in (17, 24, 31):
        sink.write(to)
        touched.append(sink.path)
    sink.kill()
    touched.append(sink.path)
    sink.copy(50)
    assert sink.found() == (list(range(50)), [STRANGE] * 4)


@pytest.mark.parametrize("ended", [killed, stopped], ids=lambda state: state.__name__)
def test_lines_of_kafka_connect_stay_and_its_offset_counts(tmp_path: Path, ended: Callable[[SunkFile], None]) -> None:
    """A worker of Apache Kafka Connect takes the sink over, and gives it back."""
    sink = SunkFile(tmp_path / "out")
    ended(sink)
    uncommitted = sink.position - (sink.group or 0)
    with sink.path.open("ab") as file:
        file.write(written(100, 350))
    sink.group = 350
    before = sink.path.read_bytes()
    with capture_logs() as logged:
        sink.copy(400)
    assert sink.path.read_bytes().startswith(before), "something was cut"
    assert sink.found() == (sorted([*range(400), *range(100, 100 + uncommitted)]), [])
    assert [entry["bytes"] for entry in logged if entry["event"] == "torn_tail_left"] == (
        [len(written(0, 250 + uncommitted))] if uncommitted else []
    )


def test_behind_a_torn_line_that_stays_a_new_line_begins(tmp_path: Path) -> None:
    sink = SunkFile(tmp_path / "out")
    killed(sink)
    os.truncate(sink.path, sink.path.stat().st_size - 3)
    sink.group = 150  # as a user sets it
    sink.copy(160)
    numbers, (torn,) = sink.found()
    assert numbers == sorted([*range(199), *range(150, 160)])
    assert torn == line(199)[: len(torn) - 1] + b"\n"


def test_an_unclean_end_of_an_older_version_cuts_nothing_and_warns(tmp_path: Path) -> None:
    sink = SunkFile(tmp_path / "out")
    sink.copy(10)
    sink.kill()
    journal = Journal(sink.path)
    entry = journal.load()
    assert entry is not None
    journal.save(Entry(entry.length, False, entry.inode, entry.offsets))
    touched.append(sink.path)
    with capture_logs() as logged:
        sink.copy(20)
    assert sink.found() == (list(range(20)), [STRANGE])
    assert [entry["bytes"] for entry in logged if entry["event"] == "tail_left"] == [len(STRANGE)]


def test_a_sink_goes_on_without_leave_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        appending, "open_append", lambda path: os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    )
    sink = SunkFile(tmp_path / "out")
    sink.copy(100)
    sink.write(120)
    sink.kill()
    with capture_logs() as logged:
        sink.copy(150)
    assert set(sink.found()[0]) == set(range(150)), "nothing is cut that was not seen"
    assert [entry["event"] for entry in logged if entry["log_level"] == "warning"] == ["torn_tail_left"]


@pytest.mark.parametrize("touch", [touched.remove, touched.truncate, touched.replace], ids=lambda touch: touch.__name__)
def test_at_least_once_nothing_is_committed_that_is_not_in_the_file(tmp_path: Path, touch: Touch) -> None:
    path = tmp_path / "out"
    writer = FileStreamSink.open_writer({"file": str(path)}, "c", exactly_once=False)
    writer.write(SinkBatch(Column([line(1)], utf8=True)))
    touch(path)
    with pytest.raises(RetriableConnectError, match=f"^{path}: was (removed|truncated)"):
        writer.commit({}, clean=False)
    writer.close()


def test_a_journal_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "out"
    (tmp_path / ".out.keelman-journal").mkdir()
    with pytest.raises(ConnectError, match="journal: the journal cannot be read"):
        FileStreamSink.open_writer({"file": str(path)}, "c", exactly_once=True)


HARMLESS = (touched.append, touched.rename, touched.rotate, touched.copytruncate, touched.leave)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_each_record_is_there_once(tmp_path: Path, seed: int) -> None:
    """Transactions, kills, torn pages and changes by others, at random."""
    dice, sink, appended, last = random.Random(seed), SunkFile(tmp_path / "out"), 0, 0
    for _ in range(60):
        step = dice.choice(["write", "write", "commit", "kill", "stop", "touch", "tear"])
        if step == "write":
            sink.write(sink.position + dice.randrange(1, 60))
        elif step == "commit":
            sink.commit()
        elif step == "stop":
            sink.stop()
        elif step == "kill":
            sink.kill()
        elif step == "touch" and sink.path.exists():
            touch = dice.choice(HARMLESS)
            touch(sink.path)
            appended += touch is touched.append
        elif step == "tear" and sink.path.exists():
            appended += _torn(sink, dice)
        last = max(last, sink.position)
    sink.copy(last)
    numbers, others = sink.found()
    assert numbers == list(range(last))
    assert others == [STRANGE] * appended


def _torn(sink: SunkFile, dice: random.Random) -> int:
    """Kills a run in the middle of a write, of which whole pages remain; returns how many lines were appended then."""
    sink.start()
    begin = sink.path.stat().st_size if sink.path.exists() else 0
    batch = [line(number) for number in range(sink.position, sink.position + 60)]
    with contextlib.suppress(RetriableConnectError):
        sink.start().write(SinkBatch(Column(batch, utf8=True)))
    sink.kill()
    pages = [at for at in range(0, sink.path.stat().st_size, 4096) if at >= begin]
    os.truncate(sink.path, dice.choice([begin, *pages]))
    if dice.random() < 0.5:
        touched.append(sink.path)
        return 1
    return 0
