"""Logs as parts of JSON answers."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import orjson
import pytest

from keelman.gateway.ohara.nodes.log_text import NOTHING, json_string, moment_of, since

NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


async def of(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def joined(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


@pytest.mark.parametrize(
    "line",
    [
        "2026-01-02T12:00:00.000000Z [info     ] serving  service=gateway",
        "2026-01-02T12:00:00.000Z INFO  KafkaServer: started",
        "[2026-01-02 12:00:00,000] INFO started",
        "2026-01-02T13:00:00+0100 x",
        '{"event":"serving","level":"info","timestamp":"2026-01-02T12:00:00Z"}',
    ],
)
def test_the_moment_of_a_line_is_found_in_each_of_our_forms(line: str) -> None:
    assert moment_of(line) == NOON


@pytest.mark.parametrize(
    "line", ["", "Traceback (most recent call last):", "2026-13-45T99:00:00Z", "0001-01-01T00:00:00+23:59"]
)
def test_a_line_without_a_moment_has_none(line: str) -> None:
    assert moment_of(line) is None


async def test_lines_before_the_moment_are_left_out_and_all_behind_it_are_there() -> None:
    old, new, rest = b"2026-01-02T11:59:59Z a\n no moment\n", b"2026-01-02T12:00:00Z b\n", b"  a trace\n"
    assert await joined(since(of(old + new, rest), NOON)) == new + rest
    assert await joined(since(of(old, new + rest), NOON)) == new + rest
    assert await joined(since(of(old, new), None)) == old + new
    assert await joined(since(of(old), NOON)) == b""


async def test_a_log_is_one_json_string_whatever_is_in_it() -> None:
    assert orjson.loads(await joined(json_string(of(b'a "b"\\\n', b"\xff\x00\n")))) == 'a "b"\\\n\ufffd\x00\n'
    assert orjson.loads(await joined(json_string(of()))) == NOTHING, "clients refuse an empty string"


async def test_a_log_of_any_size_takes_little_memory() -> None:
    piece = b"2026-01-02T12:00:00Z line\n" * 10_000
    size = largest = 0

    async def log() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield piece

    tracemalloc.start()
    try:
        async for part in json_string(since(log(), NOON)):
            size, largest = size + len(part), max(largest, len(part))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size > 200 * len(piece)
    assert largest < 2 * len(piece)
    assert peak < 30 * len(piece)
