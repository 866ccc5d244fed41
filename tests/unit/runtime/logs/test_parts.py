"""A log in parts: nothing is lost or doubled, whenever it is cut, killed, emptied or read."""

from __future__ import annotations

import gzip
import os
import threading
import time
from pathlib import Path

import pytest

from keelman.runtime.logs import parts, punching
from keelman.runtime.logs.parts import Keeping, Log, PartsReader


def text_of(log: Log, position: int | None = None) -> bytes:
    with PartsReader(log) as reader:
        text, at = b"", reader.begin() if position is None else position
        while True:
            piece, at = reader.read(at, 1000)
            if not piece:
                return text
            text += piece


def append(file: Path, text: bytes) -> None:
    with file.open("ab") as stream:
        stream.write(text)


def lines(first: int, last: int) -> bytes:
    return b"".join(b"line %d\n" % n for n in range(first, last))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log")


def test_the_oldest_lines_go_into_parts_and_their_place_on_the_disk_is_given_back(log: Log) -> None:
    append(log.file, lines(0, 100_000))
    size = log.file.stat().st_size
    cut_parts = log.keep(Keeping(100_000), written=True)
    assert cut_parts == len(log.parts()) == 10  # of some 12, since ten are kept
    assert log.keep(Keeping(100_000), written=True) == 0
    stat = log.file.stat()
    assert (stat.st_size, stat.st_blocks * 512 < 120_000) == (size, True)
    assert text_of(log) == lines(0, 100_000)[log.parts()[0].begin :]
    for part in log.parts():
        unpacked = gzip.decompress(part.path.read_bytes())
        assert unpacked.endswith(b"\n")
        assert len(unpacked) == part.end - part.begin
        assert part.path.stat().st_mode & 0o777 == 0o600
    append(log.file, b"more\n")
    assert text_of(log, size) == b"more\n"


def test_a_log_that_is_not_there(log: Log) -> None:
    assert log.keep(Keeping(1), written=True) == 0
    assert log.parts() == []
    with pytest.raises(FileNotFoundError):
        PartsReader(log)


def test_a_line_that_fills_a_part_is_cut(log: Log) -> None:
    append(log.file, b"x" * 250 + b"\nend\n")
    assert log.keep(Keeping(100), written=True) == 2
    assert text_of(log) == b"x" * 250 + b"\nend\n"


def test_killed_after_a_part_is_in_place_nothing_is_doubled(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    append(log.file, lines(0, 10_000))

    def killed(descriptor: int, end: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(parts, "punch", killed)
        with pytest.raises(KeyboardInterrupt):
            log.keep(Keeping(10_000, parts=100), written=True)
    blocks = log.file.stat().st_blocks
    assert text_of(log) == lines(0, 10_000)
    assert log.keep(Keeping(10_000, parts=100), written=True) == 0
    assert log.file.stat().st_blocks < blocks
    assert text_of(log) == lines(0, 10_000)


def test_killed_while_it_compresses_nothing_is_lost(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    append(log.file, lines(0, 1000))

    def killed(descriptor: int) -> None:
        os._exit(0)

    pid = os.fork()
    if not pid:
        monkeypatch.setattr(os, "fsync", killed)
        log.keep(Keeping(1000, parts=100), written=True)
    os.waitpid(pid, 0)
    assert [f.name for f in log.file.parent.iterdir() if f.name != "log"] != []
    assert text_of(log) == lines(0, 1000)
    assert log.keep(Keeping(1000, parts=100), written=True) > 1
    assert {f.name for f in log.file.parent.iterdir()} == {"log", *(p.path.name for p in log.parts())}
    assert text_of(log) == lines(0, 1000)


def test_without_holes_it_waits_until_nobody_writes(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "can_punch", lambda folder: False)
    append(log.file, lines(0, 1000))
    assert log.keep(Keeping(1000, parts=100), written=True) == 0
    assert log.keep(Keeping(1000, parts=100), written=False) > 1
    assert log.file.stat().st_blocks == 0
    append(log.file, lines(1000, 2000))
    assert text_of(log) == lines(0, 2000)
    # Killed between the two steps of emptying the file.
    append(log.file, lines(2000, 3000))
    log.keep(Keeping(1000, parts=100), written=False)
    os.truncate(log.file, 0)
    append(log.file, lines(3000, 4000))
    log.keep(Keeping(1000, parts=100), written=False)
    assert text_of(log) == lines(0, 4000)


def test_a_log_that_somebody_emptied_goes_on_behind_its_parts(log: Log) -> None:
    append(log.file, lines(0, 1000))
    log.keep(Keeping(1000, parts=100), written=True)
    text = text_of(log)[: log.parts()[-1].end]
    os.truncate(log.file, 0)
    append(log.file, lines(5000, 5010))
    log.keep(Keeping(1000, parts=100), written=True)
    assert text_of(log) == text + lines(5000, 5010)
    with PartsReader(log) as reader:
        position = reader.tail(20)
        tail, at = reader.read(position)
        while at < reader.end():
            piece, at = reader.read(at)
            tail += piece
        assert tail == b"".join((text + lines(5000, 5010)).splitlines(keepends=True)[-20:])
        assert reader.read(10**9) == (b"", reader.end())
    append(log.file, lines(5010, 6000))
    log.keep(Keeping(1000, parts=100), written=True)
    assert text_of(log) == text + lines(5000, 6000)


def test_old_parts_go_by_number_and_by_age(log: Log) -> None:
    append(log.file, lines(0, 1000))
    log.keep(Keeping(1000, parts=3), written=True)
    assert len(log.parts()) == 3
    begin = log.parts()[0].begin
    assert text_of(log) == lines(0, 1000)[begin:]
    assert text_of(log, 0) == lines(0, 1000)[begin:]
    oldest = log.parts()[0]
    os.utime(oldest.path, (0, time.time() - 3 * 86_400))
    log.keep(Keeping(1000, parts=3, days=4), written=True)
    assert len(log.parts()) == 3
    log.keep(Keeping(1000, parts=3, days=2), written=True)
    assert len(log.parts()) == 2
    head = log.parts()[-1].end
    log.keep(Keeping(1000, parts=3, days=1), written=True, now=lambda: time.time() + 10 * 86_400)
    assert [(p.end, p.path.stat().st_size) for p in log.parts()] == [(head, 0)]
    assert text_of(log) == lines(0, 1000)[head:]
    with PartsReader(log) as reader:
        assert reader.read(reader.tail(1))[0] == b"line 999\n"


def test_a_damaged_part_costs_its_lines_and_no_more(log: Log) -> None:
    append(log.file, lines(0, 1000))
    log.keep(Keeping(2000, parts=100), written=True)
    second = log.parts()[1]
    second.path.write_bytes(second.path.read_bytes()[:20])
    whole = lines(0, 1000)
    assert text_of(log).endswith(whole[second.end :])
    assert text_of(log).startswith(whole[: second.begin])
    second.path.unlink()
    assert text_of(log) == whole[: second.begin] + whole[second.end :]


def test_links_in_place_of_files_are_not_followed(log: Log, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret\n" * 1000)
    log.file.symlink_to(secret)
    with pytest.raises(OSError, match="symbolic link"):
        log.keep(Keeping(10), written=True)
    with pytest.raises(OSError, match="symbolic link"):
        PartsReader(log)
    log.file.unlink()
    log.file.hardlink_to(secret)
    with pytest.raises(OSError, match="not a regular file"):
        PartsReader(log)
    log.file.unlink()
    os.mkfifo(log.file)
    with pytest.raises(OSError, match="not a regular file"):
        PartsReader(log)
    log.file.unlink()
    append(log.file, b"own\n")
    (tmp_path / "log.-5_0.gz").symlink_to(secret)
    assert text_of(log) == b"own\n"


def test_who_writes_and_who_reads_lose_nothing_while_it_is_cut(log: Log) -> None:
    append(log.file, b"")
    count, writers = 20_000, 2
    stop = threading.Event()

    def write(writer: int) -> None:
        with log.file.open("ab", buffering=0) as stream:
            for n in range(count):
                stream.write(b"%d %d\n" % (writer, n))

    def keep() -> None:
        while not stop.is_set():
            log.keep(Keeping(5000, parts=10_000), written=True)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
    keeper = threading.Thread(target=keep)
    text = b""
    with PartsReader(log) as reader:
        for thread in (*threads, keeper):
            thread.start()
        position, end = 0, time.monotonic() + 60
        while any(t.is_alive() for t in threads) or position < reader.end():
            assert time.monotonic() < end
            piece, position = reader.read(position)
            text += piece
    stop.set()
    keeper.join()
    assert len(log.parts()) > 3
    assert text_of(log) == text
    for writer in range(writers):
        mine = [line for line in text.splitlines() if line.startswith(b"%d " % writer)]
        assert mine == [b"%d %d" % (writer, n) for n in range(count)]


@pytest.mark.parametrize("before", [True, False])
def test_cut_beside_the_very_read_of_these_lines(log: Log, monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
    append(log.file, lines(0, 1000))
    pread = os.pread

    def interrupted(descriptor: int, size: int, position: int) -> bytes:
        monkeypatch.setattr(os, "pread", pread)
        if before:
            log.keep(Keeping(1000, parts=100), written=True)
        actual_pread = pread(descriptor, size, position)
        if not before:
            log.keep(Keeping(1000, parts=100), written=True)
        return actual_pread

    with PartsReader(log) as reader:
        monkeypatch.setattr(os, "pread", interrupted)
        assert reader.read(50, 100)[0] == lines(0, 1000)[50:150]
        append(log.file, lines(1000, 2000))
        monkeypatch.setattr(os, "pread", interrupted)
        assert next(iter(reader.backwards()))[1][-5:] == b"1999\n"
        assert b"".join(piece for _, piece in reversed(list(reader.backwards()))) == lines(0, 2000)


def test_holes_are_real_here(tmp_path: Path) -> None:
    assert punching.can_punch(tmp_path)
    with (tmp_path / "f").open("wb+") as file:
        file.write(b"x" * 100_000)
        file.flush()
        punching.punch(file.fileno(), 70_001)
        assert os.pread(file.fileno(), 100_000, 0) == b"\0" * 70_001 + b"x" * 29_999
    with pytest.raises(OSError, match="Bad file descriptor"):
        punching.punch(-1, 5)
