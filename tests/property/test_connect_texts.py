"""Lines and offsets compared with simple models."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.connect.offsets import CommittedOffsets, identity, key_bytes, parse_key, parse_value, value_bytes
from keelman.connectors.file.file_lines import split_lines

PRIMITIVE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.text(),
    st.floats(allow_nan=False, allow_infinity=False),
)
FLAT = st.dictionaries(st.text(), PRIMITIVE, max_size=20)


@settings(deadline=None)
@given(st.lists(st.sampled_from([b"a", b"\r", b"\n", b"\r\n", "é".encode(), b"xyz"])).map(b"".join), st.integers(1, 9))
def test_lines_are_the_same_however_the_file_grows(data: bytes, step: int) -> None:
    results: list[bytes] = []
    position = 0
    for end in range(step, len(data) + step, step):
        ended, taken = split_lines(data[position:end])
        results += ended
        position += taken
    whole = re.split(rb"\r\n|\n|\r(?=.|\n)", data, flags=re.DOTALL)
    assert results == whole[:-1]
    assert data[position:] == whole[-1]


@settings(deadline=None)
@given(st.text(min_size=1), FLAT, FLAT)
def test_offsets_come_back_as_they_were_written(
    connector: str, partition: dict[str, object], offset: dict[str, object]
) -> None:
    key, value = key_bytes(connector, partition), value_bytes(offset)
    assert parse_key(key) == (connector, partition)
    assert parse_value(value) == offset
    table = CommittedOffsets(connector, [(key, value)])
    assert table.offset(dict(reversed(partition.items()))) == offset
    assert identity(partition) == identity(dict(reversed(partition.items())))
