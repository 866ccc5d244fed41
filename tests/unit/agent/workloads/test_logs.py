"""A workload's log: its end, following it, cutting it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.agent.workloads.logs import last_line, read_log, read_log_of
from keelman.runtime.logs.filter import ConnectorLines
from keelman.runtime.logs.parts import PIECE_BYTES, Keeping, Log


async def whole(file: Path, lines: int) -> bytes:
    return b"".join([piece async for piece in read_log(file, tail_lines=lines, follow=False)])


@pytest.mark.parametrize("line", [b"short\n", b"x" * 100_000 + b"\n", b"\n"])
@pytest.mark.parametrize("expected", [1, 2, 7, 10, 11, 500])
async def test_the_last_lines(tmp_path: Path, line: bytes, expected: int) -> None:
    file = tmp_path / "log"
    lines = [b"%d " % n + line for n in range(10)]
    file.write_bytes(b"".join(lines))
    assert await whole(file, expected) == b"".join(lines[-expected:])


async def test_a_last_line_without_its_end_and_logs_without_lines(tmp_path: Path) -> None:
    file = tmp_path / "log"
    assert await whole(file, 3) == b""
    file.write_bytes(b"")
    assert await whole(file, 3) == b""
    file.write_bytes(b"one\ntwo\nthr")
    assert await whole(file, 2) == b"two\nthr\n"


async def take(stream: AsyncIterator[bytes], until: bytes) -> bytes:
    got = b""
    async with asyncio.timeout(20):
        while not got.endswith(until):
            piece = await anext(stream)
            assert piece.endswith(b"\n")
            got += piece
    return got


def cut(file: Path, part_bytes: int, parts: int = 100) -> int:
    return Log(file).keep(Keeping(part_bytes, parts), written=True)


async def test_following_goes_on_over_cuts_and_ends_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with file.open("ab") as log:

        def say(text: bytes) -> None:
            log.write(text)
            log.flush()

        say(b"1\n2\n")
        stream = read_log(file, tail_lines=1, follow=True)
        assert await take(stream, b"2\n") == b"2\n"
        say(b"3\nhal")
        assert await take(stream, b"3\n") == b"3\n"
        say(b"f\n4\nfo")
        assert cut(file, 7) == 2
        say(b"ur\n5\n")
        assert await take(stream, b"5\n") == b"half\n4\nfour\n5\n"
        assert cut(file, 100) == 0
        say(b"x" * (2 * PIECE_BYTES) + b"\n6\n")
        assert cut(file, 100_000) > 1
        assert len(await take(stream, b"\n6\n")) == 2 * PIECE_BYTES + 3
        file.unlink()
        async with asyncio.timeout(20):
            assert [piece async for piece in stream] == []


async def test_the_tail_goes_back_into_the_parts(tmp_path: Path) -> None:
    file = tmp_path / "log"
    lines = [b"line %d\n" % n for n in range(100)]
    for n in range(0, 100, 10):
        with file.open("ab") as log:
            log.writelines(lines[n : n + 10])
        cut(file, 40)
    assert len(Log(file).parts()) > 10
    for expected in (1, 5, 12, 55, 99, 100, 1000):
        assert await whole(file, expected) == b"".join(lines[-expected:])


def about(connector: str, n: int) -> bytes:
    return b'{"event": "said", "connector": "%s", "n": %d}\n' % (connector.encode(), n)


async def test_lines_of_one_connector_are_found_in_the_parts_and_followed(tmp_path: Path) -> None:
    file = tmp_path / "log"
    all_lines = [about("rare" if n % 50 == 0 else "often", n) for n in range(1000)]
    for n in range(0, 1000, 100):
        with file.open("ab") as log:
            log.writelines(all_lines[n : n + 100])
        cut(file, 3000)
    rare = [about("rare", n) for n in range(0, 1000, 50)]
    for expected in (1, 3, 19, 20, 100):
        got = [piece async for piece in read_log_of(ConnectorLines("rare"), file, tail_lines=expected, follow=False)]
        assert b"".join(got) == b"".join(rare[-expected:])
    stream = read_log_of(ConnectorLines("rare"), file, tail_lines=2, follow=True)
    assert await take(stream, b"950}\n") == b"".join(rare[-2:])
    with file.open("ab") as log:
        log.write(about("often", 1000) + about("rare", 1001))
    cut(file, 10)
    assert await take(stream, b"1001}\n") == about("rare", 1001)


def test_the_last_line_of_the_last_process(tmp_path: Path) -> None:
    file = tmp_path / "log"
    assert last_line(file) == ""
    file.write_text("old\n")
    assert last_line(file, since=4) == ""
    file.write_text("old\nnew  \n\n")
    assert last_line(file, since=4) == "new"
    assert last_line(file, since=1000) == "new"  # cut since the process started
    file.write_text("y" * 9000)
    assert last_line(file) == "y" * 500
    # The whole log was cut off a moment ago.
    file.write_text("old\n" + "z" * 90 + "\n")
    assert cut(file, 10) > 1
    assert last_line(file, since=4) == "z" * 90
    assert last_line(file, since=95) == ""
