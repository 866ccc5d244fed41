"""Random writes, cuts, kills and readers of a log: every line exactly once, in order."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.runtime.logs import parts
from keelman.runtime.logs.parts import Keeping, Log, PartsReader

WRITE = st.tuples(st.just("write"), st.integers(0, 60), st.integers(0, 200))
CUT = st.tuples(st.just("cut"), st.integers(1, 500), st.sampled_from(["done", "killed before", "killed after"]))
READ = st.tuples(st.just("read"), st.integers(1, 700), st.integers(0, 3))
TAIL = st.tuples(st.just("tail"), st.integers(1, 80), st.just(0))
NO_WRITER = st.tuples(st.just("cut by no hole"), st.integers(1, 500), st.just(0))


class Killed(BaseException):
    """Acts as a kill -9 at this place."""


def killed(*_: object, **__: object) -> None:
    raise Killed


def cut(log: Log, part_bytes: int, how: str) -> None:
    keeping = Keeping(part_bytes, parts=100_000)
    target = {"done": None, "killed before": "os.rename", "killed after": "punch"}[how]
    if target is None:
        log.keep(keeping, written=True)
        return
    try:
        with patch.object(parts.os if target == "os.rename" else parts, target.rpartition(".")[2], killed):
            log.keep(keeping, written=True)
    except Killed:
        pass


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(WRITE, CUT, READ, TAIL, NO_WRITER), max_size=40))
def test_every_line_once_and_in_order(steps: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder) / "log")
        with log.file.open("ab", buffering=0) as writer:
            written, number = b"", 0
            follower = PartsReader(log)
            position, followed = 0, b""
            for step, size, more in steps:
                if step == "write":
                    line = b"%d %s\n" % (number, b"x" * more)
                    number += 1
                    for item in (line[: size % len(line)], line[size % len(line) :]):
                        writer.write(item)
                    written += line
                elif step == "cut":
                    cut(log, size, more)
                elif step == "cut by no hole":
                    with patch.object(parts, "can_punch", lambda folder: False):
                        log.keep(Keeping(size, parts=100_000), written=False)
                elif step == "read":
                    for _ in range(more):
                        piece, position = follower.read(position, size)
                        followed += piece
                else:
                    with PartsReader(log) as reader:
                        assert whole(reader, reader.tail(size)) == b"".join(written.splitlines(keepends=True)[-size:])
            followed += whole(follower, position)
            follower.close()
            assert followed == written
            with PartsReader(log) as reader:
                assert whole(reader, 0) == written
                assert reader.last_bytes(300) == written[-300:]


def whole(reader: PartsReader, position: int) -> bytes:
    actual_whole = b""
    while True:
        piece, position = reader.read(position, 100)
        if not piece:
            return actual_whole
        actual_whole += piece
