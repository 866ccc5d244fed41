"""Java's patterns, compared with Java's own results."""

import json
from typing import Any

import pytest

from keelman.connect.java.regex import JavaPattern, PatternError
from support.places import RECORDED_FOLDER

RECORDED = json.loads((RECORDED_FOLDER / "data" / "java_regex.json").read_text())
FOUND = [case for case in RECORDED if "found" in case]
REPLACED = [case for case in RECORDED if "replacement" in case]
REFUSED = [case for case in RECORDED if "error" in case and "replacement" not in case]
# Constructs that only Java supports: refused, never approximated.
NOT_HERE = {"(?<!a+)b"}


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case["pattern"])
def test_it_finds_what_java_finds(case: dict[str, Any]) -> None:
    if case["pattern"] in NOT_HERE:
        with pytest.raises(PatternError):
            JavaPattern(case["pattern"])
        return
    pattern = JavaPattern(case["pattern"])
    for text, matches, groups in case["found"]:
        assert pattern.matches(text) is matches, text
        assert pattern.first(text) == groups, text


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["pattern"])
def test_what_java_refuses_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(PatternError):
        JavaPattern(case["pattern"])


@pytest.mark.parametrize("case", REPLACED, ids=lambda case: case["replacement"])
def test_replacements(case: dict[str, Any]) -> None:
    pattern = JavaPattern(case["pattern"])
    if "error" in case:
        with pytest.raises(PatternError):
            pattern.replace_first(case["text"], case["replacement"])
    else:
        assert pattern.replace_first(case["text"], case["replacement"]) == case["first"]


@pytest.mark.parametrize(
    "pattern", ["\\Ga", "\\X", "\\b{g}a", "(?U)\\w", "(?<=a|bc)d", "\\1(a)", "(a\\1)", "\\p{IsLatin}", "\\p{InGreek}"]
)
def test_what_cannot_be_had_says_so(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"supported here|cannot be used here"):
        JavaPattern(pattern)
