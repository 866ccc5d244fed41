"""A workload's log: its end, following it, cutting it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.agent.logs import PIECE_BYTES, cut_if_long, last_line, older, read_log


async def whole(file: Path, lines: int) -> bytes:
    return b"".join([piece async for piece in read_log(file, tail_lines=lines, follow=False)])


@pytest.mark.parametrize("line", [b"short\n", b"x" * 100_000 + b"\n", b"\n"])
@pytest.mark.parametrize("wanted", [1, 2, 7, 10, 11, 500])
async def test_the_last_lines(tmp_path: Path, line: bytes, wanted: int) -> None:
    file = tmp_path / "log"
    lines = [b"%d " % n + line for n in range(10)]
    file.write_bytes(b"".join(lines))
    assert await whole(file, wanted) == b"".join(lines[-wanted:])


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


async def test_following_goes_on_over_a_cut_and_ends_with_the_file(tmp_path: Path) -> None:
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
        assert cut_if_long(file, largest_bytes=3)
        assert file.stat().st_size == 0
        assert older(file).read_bytes() == b"1\n2\n3\nhalf\n4\nfo"
        say(b"ur\n5\n")
        assert await take(stream, b"5\n") == b"half\n4\nfour\n5\n"
        assert not cut_if_long(file, largest_bytes=100)
        say(b"x" * (2 * PIECE_BYTES) + b"\n6\n")
        assert len(await take(stream, b"\n6\n")) == 2 * PIECE_BYTES + 3
        file.unlink()
        async with asyncio.timeout(20):
            assert [piece async for piece in stream] == []


def test_cutting_what_is_not_there(tmp_path: Path) -> None:
    assert not cut_if_long(tmp_path / "log")


def test_the_last_line_of_the_last_process(tmp_path: Path) -> None:
    file = tmp_path / "log"
    assert last_line(file) == ""
    file.write_text("old\n")
    assert last_line(file, since=4) == ""
    file.write_text("old\nnew  \n\n")
    assert last_line(file, since=4) == "new"
    assert last_line(file, since=1000) == "new"  # cut since it started
    file.write_text("y" * 9000)
    assert last_line(file) == "y" * 500
