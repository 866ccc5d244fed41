"""A pattern whose match would not end is given up."""

from __future__ import annotations

import pytest

from keelman.connect.java.bounded_match import SlowPattern, matches_in_time, may_be_slow
from keelman.connect.java.regex import JavaPattern


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(?:a*)*b", "(.*a){20}b", ".*.*.*.*.*.*.*.*.*.*b"])
def test_a_slow_pattern_is_given_up(pattern: str) -> None:
    with pytest.raises(SlowPattern, match=r"was not matched within 0\.5 s"):
        matches_in_time(JavaPattern(pattern), "a" * 200, 0.5)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("(ab)+c", "ababc", True),
        ("(a+)+b", "aaab", True),
        ("(a+)+b", "aac", False),
        ("x.*", "xy", True),
        ("x", "", False),
    ],
)
def test_others_match_as_ever(pattern: str, text: str, matches: bool) -> None:
    assert matches_in_time(JavaPattern(pattern), text) is matches


@pytest.mark.parametrize("pattern", ["orders", "orders-.*", "a|b|c", "(orders|payments)-[0-9]+", r"\\*\\+a+b*c+"])
def test_usual_patterns_need_no_process(pattern: str) -> None:
    assert not may_be_slow(pattern)
