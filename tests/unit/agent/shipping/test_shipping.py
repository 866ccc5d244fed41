"""The delivered form of lines, and logs that are read from a stored position."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from keelman.agent.shipping.lines import MAX_LINE_BYTES, ClusterLines, formed, worker_id
from keelman.agent.shipping.progress import DeliveryProgress, Pending, read_progress, write_progress
from keelman.agent.shipping.source import Batch, Source, Stream
from keelman.runtime.logs.parts import MAX_NEEDED, Keeping, Log

WORKER = worker_id("some uid")
PREFIX = f"[Worker-{WORKER}] "


@pytest.mark.parametrize(
    ("line", "delivered"),
    [
        (
            "2026-11-25T16:15:27.538073Z [info     ] assigned                 connector='x y' n=3 service=worker",
            "[2026-11-25 16:15:27,538] INFO assigned connector='x y' n=3 (keelman.worker)",
        ),
        (
            "2026-11-25T16:15:27.538555Z [warning  ] foreign 3        [aiokafka.x] worker_cluster=demo service=spark",
            "[2026-11-25 16:15:27,538] WARN foreign 3 worker_cluster=demo (aiokafka.x)",
        ),
        ("2026-11-25T16:15:27Z [critical] gone", "[2026-11-25 16:15:27,000] FATAL gone (keelman.worker)"),
        (
            '{"event":"assigned","level":"error","timestamp":"2026-11-25T16:15:27.5Z","n":3,"service":"worker"}',
            "[2026-11-25 16:15:27,500] ERROR assigned n=3 (keelman.worker)",
        ),
        (
            "[2026-11-25 16:15:27,538] INFO [c|task-0] Started (org.apache.kafka.connect.runtime.Worker:12)",
            "[2026-11-25 16:15:27,538] INFO [c|task-0] Started (org.apache.kafka.connect.runtime.Worker:12)",
        ),
        ('  File "x.py", line 4', '  File "x.py", line 4'),
        ("{not json", "{not json"),
        ("", ""),
    ],
)  # fmt: skip
def test_the_form_of_a_line(line: str, delivered: str) -> None:
    assert list(formed(line.encode(), WORKER)) == [(PREFIX + delivered).rstrip().encode()]


def test_a_very_long_line_becomes_several() -> None:
    results = list(formed(b"x" * (2 * MAX_LINE_BYTES + 1), WORKER))
    assert [len(line) - len(PREFIX) for line in results] == [MAX_LINE_BYTES, MAX_LINE_BYTES, 1]
    assert len(WORKER) == 17
    assert int(WORKER, 16) >= 0


def test_lines_about_one_cluster_with_their_traces() -> None:
    about, mine = ClusterLines("demo"), False
    results = []
    for line in (
        b"  of somebody",
        b"2026-11-25T16:15:27.1Z [info     ] a worker_cluster=demo connector=x",
        b"Traceback",
        b"2026-11-25T16:15:27.1Z [info     ] b worker_cluster=demo2 connector=x",
        b"Traceback of the other",
        b"2026-11-25T16:15:27.1Z [info     ] c connector=x worker_cluster=demo",
        b'{"event":"d","worker_cluster":"demo"}',
        b'{"event":"e"}',
    ):
        mine = about.is_mine(line, mine)
        results += [line] if mine else []
    assert b" ".join(results).count(b"worker_cluster=demo2") == 0
    assert [line[:9] for line in results] == [b"2026-11-2", b"Traceback", b"2026-11-2", b'{"event":']
    assert b" a " in results[0]
    assert b" c " in results[2]


def source_of(file: Path, about: str = "") -> Source:
    return Source(Stream("demo-0", "worker/demo/0", file, WORKER, about))


def texts(batch: Batch | None) -> list[str]:
    return [] if batch is None else [line.decode().removeprefix(PREFIX) for line in batch.lines]


def test_whole_lines_are_read_and_the_last_one_once_it_has_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    source = source_of(log)
    place = source.place(DeliveryProgress())
    assert source.read(place, 100) is None
    log.write_bytes(b"a\nb\nhalf")
    place = source.place(place)
    batch = source.read(place, 100)
    assert texts(batch) == ["a", "b"]
    assert batch is not None
    place = DeliveryProgress(batch.end, place.inode)
    assert source.read(place, 100) is None
    assert texts(source.read(place, 100, last=True)) == ["half"]
    with log.open("ab") as stream:
        stream.write(b" of it\n\n")
    assert texts(source.read(place, 100)) == ["half of it", PREFIX.rstrip()]
    assert source.waiting(place) == len(b"half of it\n\n")


def test_what_was_read_up_to_a_position_is_read_again_as_it_was(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"a\nb\nhalf")
    source = source_of(log)
    place = source.place(DeliveryProgress())
    batch = source.read(place, 100, last=True)
    assert batch is not None
    with log.open("ab") as stream:
        stream.write(b" of it\nc\n")
    again = source.read(place, batch.end - place.position, until=batch.end)
    assert again == batch


def test_a_log_that_is_another_file_or_was_emptied_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"a\nb\n")
    source = source_of(log)
    place = source.place(DeliveryProgress())
    place = DeliveryProgress(4, place.inode, length=7, id=place.id)
    assert source.place(place) == place
    os.truncate(log, 0)
    emptied = source.place(place)
    assert (emptied.position, emptied.length, emptied.id) == (0, 7, place.id)
    log.unlink()
    log.write_bytes(b"c\nd\nand more\n")
    assert texts(source.read(source.place(DeliveryProgress(0, place.inode)), 100)) == ["c", "d", "and more"]
    assert source_of(log).at_end(DeliveryProgress()).position == len(b"c\nd\nand more\n")


def test_parts_that_are_gone_are_told(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    log.file.write_bytes(b"".join(b"line %06d\n" % n for n in range(3000)))
    log.keep(Keeping(8192, parts=1), written=True)
    source = source_of(log.file)
    batch = source.read(source.place(DeliveryProgress()), 1 << 20)
    assert batch is not None
    assert batch.lost == log.parts()[0].begin > 0
    assert texts(batch)[0] == f"line {batch.lost // 12:06d}"


def test_parts_that_somebody_needs_stay_however_many_but_not_for_ever(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    log.file.write_bytes(b"".join(b"line %06d\n" % n for n in range(100_000)))
    log.keep(Keeping(4096, parts=2, days=1), written=True, needed=1_100_000)
    assert log.parts()[0].begin <= 1_100_000 < log.parts()[0].end
    assert b"line 091666" in gzip.decompress(log.parts()[0].path.read_bytes())
    log.keep(Keeping(4096, parts=2, days=1e-9), written=True, needed=1_100_000)
    assert log.parts()[0].begin <= 1_100_000
    log.keep(Keeping(4096, parts=2), written=True)
    assert len(log.parts()) == 2
    other = Log(tmp_path / "other")
    other.file.write_bytes(b"".join(b"line %06d\n" % n for n in range(100_000)))
    other.keep(Keeping(4096, parts=2), written=True, needed=0)
    assert len(other.parts()) == MAX_NEEDED


def test_what_is_kept_is_read_back_and_nonsense_is_nothing(tmp_path: Path) -> None:
    file = tmp_path / "kept" / "s3.json"
    assert read_progress(file) is None
    progress = DeliveryProgress(5, 7, mine=True, length=9, target=3, pending=Pending("a/b", 12, mine=False))
    write_progress(file, progress)
    assert read_progress(file) == progress
    file.write_bytes(b"{}")
    assert read_progress(file) is None
