"""The file sink without Kafka: its journal restores the file's order."""

import os
import resource
from pathlib import Path

import pytest

from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.plugin import Assignment, KeptOffset, SinkTask
from keelman.connect.records import Column, SinkBatch, TopicPartition
from keelman.connect.tasks.kept_offsets import SinkReader
from keelman.connectors.file import journaled_writer as file_sink
from keelman.connectors.file.appending import lines
from keelman.connectors.file.journaled_writer import JournaledWriter
from keelman.connectors.file.sink import FileStreamSink
from keelman.connectors.tools.verifiable import Lines
from keelman.engine.control import CutShort
from keelman.engine.sink.exactly_once.journal import Journal, journal_path

P0 = TopicPartition("t", 0)


def test_lines_of_values() -> None:
    assert lines(Column([b"a", None, b"\xff"], utf8=True)) == "a\nnull\n\ufffd\n".encode()
    assert lines(Column([b"\xff", {"a": 1.0}, None])) == b"\xff\n{a=1.0}\nnull\n"
    assert lines(Column([])) == b""


def write(writer: JournaledWriter, *values: bytes) -> None:
    writer.write(SinkBatch(Column(list(values), utf8=True)))


def opened(path: Path, connector: str = "c") -> JournaledWriter:
    """Opens the writer of a task in a group without committed offsets."""
    writer = JournaledWriter(path, connector)
    writer.take_over(Assignment(SinkReader("w", f"connect-{connector}", "k"), {P0: None}))
    return writer


def test_a_torn_tail_is_cut_and_a_strangers_lines_stay(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"before\n")
    writer = opened(path)
    write(writer, b"torn")
    writer.close()  # as after a crash before the first commit
    writer = opened(path)
    assert (path.read_bytes(), writer.kept()) == (b"before\n", {})
    write(writer, b"one")
    writer.commit({P0: KeptOffset(1, (None,))}, clean=False)
    write(writer, b"torn")
    writer.close()
    writer = opened(path)
    assert (path.read_bytes(), writer.kept()) == (b"before\none\n", {P0: KeptOffset(1, (None,))})
    writer.commit({P0: KeptOffset(1, (1,))}, clean=True)
    writer.close()
    with path.open("ab") as file:
        file.write(b"by hand\n")
    writer = opened(path)
    write(writer, b"two")
    writer.commit({P0: KeptOffset(2, (1,))}, clean=True)
    writer.close()
    assert path.read_bytes() == b"before\none\nby hand\ntwo\n"


def test_a_shortened_and_a_replaced_file_go_on_at_their_end(tmp_path: Path) -> None:
    path = tmp_path / "out"
    writer = opened(path)
    write(writer, b"one", b"two")
    writer.commit({P0: KeptOffset(2, (None,))}, clean=False)
    writer.close()
    path.write_bytes(b"o\n")
    writer = opened(path)
    write(writer, b"three")
    writer.commit({P0: KeptOffset(3, (2,))}, clean=False)
    writer.close()
    assert path.read_bytes() == b"o\nthree\n"
    path.rename(tmp_path / "rotated")
    path.write_bytes(b"a new file, longer than the journal says\n")
    writer = opened(path)
    assert writer.kept() == {P0: KeptOffset(3, (2,))}
    write(writer, b"four")
    writer.close()
    assert path.read_bytes() == b"a new file, longer than the journal says\nfour\n"


def test_two_connectors_keep_their_offsets_apart(tmp_path: Path) -> None:
    path = tmp_path / "out"
    for name, offset in (("a", 1), ("b", 2)):
        writer = opened(path, name)
        assert writer.kept() == {}
        writer.commit({P0: KeptOffset(offset, (None,))}, clean=True)
        writer.close()
    writer = opened(path, "a")
    assert writer.kept() == {P0: KeptOffset(1, (None,))}
    writer.close()


def test_one_writer_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_sink, "LOCK_SECONDS", 0.05)
    first = opened(tmp_path / "out")
    with pytest.raises(RetriableConnectError, match="another writer"):
        opened(tmp_path / "out")
    first.close()
    opened(tmp_path / "out").close()


def test_a_commit_that_the_disk_refuses_is_tried_again_from_the_last_journal(tmp_path: Path) -> None:
    path = tmp_path / "out"
    writer = opened(path)
    write(writer, b"one")
    writer.commit({P0: KeptOffset(1, ())}, clean=False)
    write(writer, b"two")
    obstacle = journal_path(path).with_name(journal_path(path).name + ".new")
    obstacle.mkdir()
    with pytest.raises(RetriableConnectError, match="journal: cannot be written"):
        writer.commit({P0: KeptOffset(2, ())}, clean=False)
    writer.close()
    obstacle.rmdir()
    writer = opened(path)
    assert (writer.kept(), path.read_bytes()) == ({P0: KeptOffset(1, ())}, b"one\n")
    writer.close()


def test_a_full_disk_is_told_with_the_file(tmp_path: Path) -> None:
    full = tmp_path / "out"
    full.symlink_to("/dev/full")
    writer, file_lines = FileStreamSink.open_writer({"file": str(full)}, "c", exactly_once=False), Lines(str(full))
    expected = f"^{full}: cannot be written: No space left on device$"
    with pytest.raises(RetriableConnectError, match=expected):
        writer.write(SinkBatch(Column([b"one"], utf8=True)))
    with pytest.raises(RetriableConnectError, match=expected):
        file_lines.write([{"a": 1}])
    writer.close()
    file_lines.close()


def test_a_limit_on_a_journaled_file_is_told_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"x" * 100_000)
    writer = opened(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(RetriableConnectError, match=f"^{path}: cannot be written: File too large$"):
            write(writer, b"one")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    writer.close()


def test_a_damaged_journal_stops_the_task_and_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "out"
    opened(path).close()
    journal = journal_path(path)
    journal.write_bytes(journal.read_bytes()[:-3])
    with pytest.raises(ConnectError, match=r"damaged .* remove it"):
        opened(path)


def test_where_exactly_once_can_be(tmp_path: Path) -> None:
    assert FileStreamSink.supports_exactly_once({"file": str(tmp_path / "new")})
    assert not FileStreamSink.supports_exactly_once({"file": "/dev/null"})
    assert not FileStreamSink.supports_exactly_once({})
    with pytest.raises(ConnectError, match="No such file"):
        FileStreamSink.open_writer({"file": str(tmp_path / "no" / "x")}, "c", exactly_once=True)
    assert Journal(tmp_path / "never").load() is None


def test_a_pipe_is_not_waited_for_and_a_full_one_holds_nobody_up(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    beats = 0

    def beat() -> None:
        """Reads a part of the pipe at each beat; the last beat cuts the run."""
        nonlocal beats
        beats += 1
        if beats == 40:
            raise CutShort("CUT")
        taken.append(os.read(reader, 1 << 16))

    task = SinkTask("c", 0, {}, beat, lambda index, error: None)
    with pytest.raises(RetriableConnectError, match="no process has the pipe open"):
        FileStreamSink.open_task_writer({"file": str(pipe)}, task, exactly_once=True)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    taken: list[bytes] = []
    writer = FileStreamSink.open_task_writer({"file": str(pipe)}, task, exactly_once=True)
    writer.write(SinkBatch(Column([b"x" * 1_000_000], utf8=True)))
    assert 0 < beats < 40
    assert b"".join([*taken, os.read(reader, 1 << 16)]) == b"x" * 1_000_000 + b"\n"
    with pytest.raises(CutShort):
        writer.write(SinkBatch(Column([b"x" * 10_000_000], utf8=True)))
    os.close(reader)
    with pytest.raises(RetriableConnectError, match=f"^{pipe}: cannot be written: Broken pipe"):
        writer.write(SinkBatch(Column([b"x"], utf8=True)))
    writer.close()
