"""What a source's batches take of what its reader has left, and when."""

from pathlib import Path

import pytest

from keelman.connect.records import Column, PackedRecords, SourceBatch
from keelman.connectors.file.source import FileReader
from keelman.engine.source.copy import ReadPosition

LINES = Column([b"1", b"22", b"333"])
PACKED = [PackedRecords(b"..", 0, 40), PackedRecords(b"..", 1, 2)]


class RecordsReader(FileReader):
    """A reader whose lag is in records."""

    lag_unit = "records"


@pytest.mark.parametrize(
    ("kind", "batch", "taken"),
    [
        (FileReader, SourceBatch("t", LINES, passed=9), 9),
        (FileReader, SourceBatch("t", LINES), 700),
        (RecordsReader, SourceBatch("t", LINES), 3),
        (RecordsReader, SourceBatch("t", Column([]), packed=PACKED), 42),
    ],
)
def test_a_batch_takes_from_the_lag_in_the_lags_unit(kind: type[FileReader], batch: SourceBatch, taken: int) -> None:
    passage = ReadPosition()
    passage.open(kind("/no/file", "t"))
    for _ in range(2):
        passage.read(batch)
        passage.sent(700)
    assert passage.committed() == 2 * taken
    assert passage.committed() == 0


def test_what_was_read_is_left_until_it_is_committed(tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_bytes(b"one\ntwo\nthree\n")
    passage, reader = ReadPosition(), FileReader(str(file), "t", most_lines=1)
    passage.open(reader)
    assert passage.lag() is None
    lags = []
    for sent in (True, True, False):
        batch = reader.read()
        assert batch is not None
        passage.read(batch)
        if sent:
            passage.sent(100)
        lags.append(passage.lag())
    passage.committed()
    assert (lags, passage.lag()) == ([14, 14, 14], 6)  # the last one was given up
    reader.close()
