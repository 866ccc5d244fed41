"""A column of keys, compared with the plain algorithm in tests/support."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.kafka.batches.partitioner import murmur2, partition_for, partitions_for
from support import partitioner as reference

# Enough copies of a few keys make a column long without costing the test much.
KEYS = st.lists(st.binary(max_size=45) | st.sampled_from([b"k" * n for n in (255, 256, 257, 300)]), max_size=30)


@given(KEYS, st.sampled_from([0, 100]), st.integers(1, 5000))
@settings(max_examples=100, deadline=None)
def test_keys_lie_where_java_puts_them(keys: list[bytes], more: int, count: int) -> None:
    assert np.__name__ in sys.modules  # otherwise the fast path is not taken
    column = keys + [b"%d" % number for number in range(more)]
    assert partitions_for(column, count) == [reference.partition_for(key, count) for key in column]
    assert [partition_for(key, count) for key in keys] == partitions_for(keys, count)


def test_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    column = [b"key-%d" % number * (number % 9) for number in range(300)]
    with_numpy = partitions_for(column, 11)
    monkeypatch.delitem(sys.modules, "numpy")
    assert partitions_for(column, 11) == with_numpy
    assert "numpy" not in sys.modules


def test_javas_own_examples() -> None:
    # From UtilsTest.testMurmur2 of the Java client.
    examples = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    for key, value in examples.items():
        assert murmur2(key) == value & 0xFFFFFFFF
