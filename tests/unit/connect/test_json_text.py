"""JSON up to the limits of Connect's parser, and batches with a text that the fast path cannot read."""

from __future__ import annotations

import codecs
import json

import pytest

from keelman.connect.converters.json_converter import JsonConverter
from keelman.connect.converters.json_text import MOST_DIGITS, MOST_LEVELS, MOST_NAME, MOST_STRING
from keelman.connect.errors import DataError

BARE = JsonConverter({"schemas.enable": "false"})
NUMBER = b'{"schema":{"type":"int64"},"payload":%b}'


@pytest.mark.parametrize(
    ("within", "beyond", "what"),
    [
        (b'{"%b":1}' % (b"n" * MOST_NAME), b'{"%b":1}' % (b"n" * (MOST_NAME + 1)), "of a name"),
        (b'["%b"]' % (b"s" * MOST_STRING), b'["%b"]' % (b"s" * (MOST_STRING + 1)), "of a string"),
        (b"9" * MOST_DIGITS, b"9" * (MOST_DIGITS + 1), "a number has 1001 digits, more than 1000"),
        (b'{"%b":1}' % (b'\\"' * MOST_NAME), b'{"%b":1}' % (b'\\"' * (MOST_NAME + 1)), "of a name"),
        (
            b'{"%b":1}' % ("😀" * (MOST_NAME // 2)).encode(),
            b'{"%b_":1}' % ("😀" * (MOST_NAME // 2)).encode(),
            "of a name",
        ),
        (b'["%b"]' % ("😀" * (MOST_STRING // 2)).encode(), b'["%b_"]' % ("😀" * (MOST_STRING // 2)).encode(), "string"),
        (b"[0.%b]" % (b"1" * (MOST_DIGITS - 1)), b"[0.%b]" % (b"1" * MOST_DIGITS), "a number has 1001 digits"),
    ],
    ids=["name", "string", "number", "quotes in a name", "wide name", "wide string", "fraction"],
)
def test_what_is_beyond_a_limit_is_refused_with_the_limit(within: bytes, beyond: bytes, what: str) -> None:
    for mark in (b"", codecs.BOM_UTF8):
        BARE.to_connect([mark + within, b"1"])
        with pytest.raises(DataError) as refused:
            BARE.to_connect([b"1", mark + beyond])
        assert what in str(refused.value.__cause__)


@pytest.mark.parametrize(("opens", "closes"), [(b"[", b"]"), (b'{"":', b"}"), (b'[{"a":', b"}]")])
def test_as_many_levels_are_read_as_by_connect(opens: bytes, closes: bytes) -> None:
    levels = opens.count(b"[") + opens.count(b"{")
    most = MOST_LEVELS // levels
    BARE.to_connect([b"1", opens * most + b"1" + closes * most])
    for beyond in (most + 1, 1024 // levels, 5000):
        with pytest.raises(DataError) as refused:
            BARE.to_connect([b"1", opens * beyond + b"1" + closes * beyond])
        assert "more than 1000 levels" in str(refused.value.__cause__)
    shallow = b"[" + b",".join([b'{"a":[]}'] * 2_000) + b"]"
    assert BARE.to_connect([shallow]).values == [[{"a": []}] * 2_000]


def test_one_text_of_another_encoding_changes_nothing_about_its_neighbours() -> None:
    texts = [b'{"n":1}', codecs.BOM_UTF8 + b'{"n":2}', '{"n":3}'.encode("utf-16"), b'{"n":4}', None]
    assert BARE.to_connect(texts).values == [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}, None]


def test_large_numbers_are_exact_in_batches_with_a_known_schema() -> None:
    converter = JsonConverter({"schemas.enable": "true"})
    for _ in range(2):  # the second time with a known schema
        read = converter.to_connect(
            [NUMBER % b"1", NUMBER % b"1e19", NUMBER % b"18446744073709551617", NUMBER % b"2.9"]
        )
        assert read.values == [1, -8446744073709551616, 1, 2]


def test_a_negative_fraction_stays_negative_and_a_negative_zero_does_not() -> None:
    (read,) = BARE.to_connect([b"[-0.5,-0.05,-0.0,-10.0,-0]"]).values
    assert json.dumps(read) == "[-0.5, -0.05, 0.0, -10.0, 0]"
