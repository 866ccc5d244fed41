"""Patterns match in bounded time, with the results of Java's engine."""

from __future__ import annotations

import json
import re
import time

import pytest

from keelman.connect.java.bounded_match import BoundedPattern, SlowPattern
from keelman.connect.java.regex import JavaPattern, PatternError
from support.places import RECORDED_FOLDER

RECORDED = json.loads((RECORDED_FOLDER / "data" / "java_regex.json").read_text())
FOUND = [case for case in RECORDED if "found" in case and case["pattern"] != "(?<!a+)b"]
NAME = "a" * 249
SECONDS = 3.0
"""Of a processor: far more than is needed; each of the patterns would take years."""


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b", "(a|a)*b", "(?:a*)*b", "(.*a){20}b", ".*.*.*.*.*.*.*.*.*.*b", "a?" * 40 + "a" * 40 + "b" + "a" * 40,
        "(a|aa)" * 40 + "b", "(?x)(a+) +b", "(?=(a+)+b)a*", "(?<!a)(a+)+b", "(?>(a+)+)b", "(?i)(A+)+b",
    ],
)  # fmt: skip
def test_a_pattern_that_would_never_end_is_soon_known_not_to_match(pattern: str) -> None:
    begun = time.thread_time()
    java = JavaPattern(pattern)
    assert java.matches(NAME) is False
    assert java.replace_first(NAME, "x") in (NAME, "x")
    assert time.thread_time() - begun < SECONDS


@pytest.mark.parametrize(
    "pattern",
    [r"((a+)\2?)+b", r"(a*)*\1b", r"(.*)(.*)(.*)(.*)(.*)\1\2\3x", "(?:a{1000}){1000}", r"(?:(?:\b){60000}){60000}"],
)
def test_what_would_still_take_too_long_is_given_up(pattern: str) -> None:
    begun = time.thread_time()
    with pytest.raises(SlowPattern, match="takes too long to match: it"):
        JavaPattern(pattern).matches(NAME)
    assert time.thread_time() - begun < SECONDS


@pytest.mark.parametrize("pattern", ["(" * 5000, "(" * 2000 + "a" + ")" * 2000, "(?:" * 900 + "a+" + ")+" * 900])
def test_a_pattern_of_many_levels_is_refused(pattern: str) -> None:
    with pytest.raises((PatternError, SlowPattern), match=r"too deeply|too long"):
        JavaPattern(pattern).matches(NAME)


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case["pattern"])
def test_the_machine_finds_what_java_finds(case: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedPattern, "_is_quick", lambda self, text: False)
    pattern = JavaPattern(str(case["pattern"]))
    for text, matches, groups in case["found"]:  # type: ignore[attr-defined]
        assert pattern.matches(text) is matches, text
        assert pattern.first(text) == groups, text


@pytest.mark.parametrize(
    ("pattern", "text", "replacement", "expected"),
    [
        ("(ab)+c", "xababcx", "<$1>", "x<ab>x"),
        ("(?<first>a+)*(b)?", "aac", "${first}-$2", "aa-c"),
        (r"(?:(\w+)-)+", "a-bc-d", "$1", "bcd"),
        (r"(?:(a|b)\1)+", "aabbab", "[$1]", "[b]ab"),
        (r"(?i:(?:(a)|b)+)", "xAbBA", "$1", "xA"),
        ("(?:a|ab)(?:c|bcd)*d*", "abcd", "!", "!"),
    ],
)
def test_groups_are_those_of_the_first_way(pattern: str, text: str, replacement: str, expected: str) -> None:
    assert JavaPattern(pattern).replace_first(text, replacement) == expected
    assert re.sub(pattern.replace("?<", "?P<"), "", text, count=1) == JavaPattern(pattern).replace_first(text, "")


@pytest.mark.parametrize(
    "pattern", ["orders", "orders-.*", "a|b|c", "(orders|payments)-[0-9]+", ".*-orders-.*-v[0-9]+$", r"mm2.*\.internal"]
)
def test_usual_patterns_are_left_to_pythons_engine(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keelman.connect.java.bounded_match.steps_of", None)
    assert JavaPattern(pattern).matches("x" * 249) is False
