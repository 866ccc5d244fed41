"""What a source's batches take of what its reader has left."""

import pytest

from keelman.connect.records import Column, PackedRecords, SourceBatch
from keelman.connectors.file_source import FileReader
from keelman.engine.passage import Passage

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
    passage = Passage()
    passage.open(kind("/no/file", "t"))
    passage.sent(batch, 700)
    passage.sent(batch, 700)
    assert passage.committed() == 2 * taken
    assert passage.committed() == 0
