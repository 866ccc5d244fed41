"""Rows that Spark sends through a pipe: an early end of the pipe is an error."""

import io

import pyarrow as pa
import pytest

from keelman.engine.slot.daemon import Uncut

BATCH = pa.RecordBatch.from_pydict({"n": pa.array([1, 2])})


def stream() -> tuple[bytes, int]:
    """Two batches, and their length without the end mark."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, BATCH.schema) as writer:
        writer.write_batch(BATCH)
        writer.write_batch(BATCH)
        length = out.tell()
    return out.getvalue(), length


def test_a_whole_stream_is_read_to_its_end() -> None:
    data, _ = stream()
    assert [batch.num_rows for batch in pa.ipc.open_stream(Uncut(io.BytesIO(data)))] == [2, 2]


def test_a_stream_without_its_mark_is_an_error_though_arrow_would_take_it() -> None:
    data, length = stream()
    assert [batch.num_rows for batch in pa.ipc.open_stream(io.BytesIO(data[:length]))] == [2, 2]
    with pytest.raises(EOFError, match="hung up"):
        list(pa.ipc.open_stream(Uncut(io.BytesIO(data[:length]))))
