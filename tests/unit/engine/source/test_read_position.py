"""How and when a source's batches reduce its reader's lag."""

from pathlib import Path

import pytest

from keelman.connect.records import Column, PackedRecords, SourceBatch
from keelman.connectors.file.file_reader import FileReader
from keelman.engine.source.read_position import ReadPosition

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
    position = ReadPosition(kind("/no/file", "t"))
    for _ in range(2):
        position.read(batch)
        position.sent(700)
    assert position.committed() == 2 * taken
    assert position.committed() == 0


def test_what_was_read_is_left_until_it_is_committed(tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_bytes(b"one\ntwo\nthree\n")
    reader = FileReader(str(file), "t", most_lines=1)
    position = ReadPosition(reader)
    assert position.lag() is None
    lags = []
    for sent in (True, True, False):
        batch = reader.read()
        assert batch is not None
        position.read(batch)
        if sent:
            position.sent(100)
        lags.append(position.lag())
    position.committed()
    assert (lags, position.lag()) == ([14, 14, 14], 6)  # the last batch was given up
    reader.close()
