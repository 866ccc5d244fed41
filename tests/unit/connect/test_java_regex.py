"""Java's patterns, compared with Java's own results."""

import json
from typing import Any

import pytest

from keelman.connect.java.regex import JavaPattern, PatternError
from support.places import RECORDED_FOLDER

RECORDED = json.loads((RECORDED_FOLDER / "data" / "java_regex.json").read_text())
FOUND = [item for item in RECORDED if "found" in item]
REPLACED = [item for item in RECORDED if "replacement" in item]
REFUSED = [item for item in RECORDED if "error" in item and "replacement" not in item]
# Constructs that only Java supports: refused, never approximated.
NOT_HERE = {"(?<!a+)b"}


@pytest.mark.parametrize("said", FOUND, ids=lambda said: said["pattern"])
def test_it_finds_what_java_finds(said: dict[str, Any]) -> None:
    if said["pattern"] in NOT_HERE:
        with pytest.raises(PatternError):
            JavaPattern(said["pattern"])
        return
    pattern = JavaPattern(said["pattern"])
    for text, matches, groups in said["found"]:
        assert pattern.matches(text) is matches, text
        assert pattern.first(text) == groups, text


@pytest.mark.parametrize("said", REFUSED, ids=lambda said: said["pattern"])
def test_what_java_refuses_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(PatternError):
        JavaPattern(said["pattern"])


@pytest.mark.parametrize("said", REPLACED, ids=lambda said: said["replacement"])
def test_replacements(said: dict[str, Any]) -> None:
    pattern = JavaPattern(said["pattern"])
    if "error" in said:
        with pytest.raises(PatternError):
            pattern.replace_first(said["text"], said["replacement"])
    else:
        assert pattern.replace_first(said["text"], said["replacement"]) == said["first"]


@pytest.mark.parametrize(
    "pattern", ["\\Ga", "\\X", "\\b{g}a", "(?U)\\w", "(?<=a|bc)d", "\\1(a)", "(a\\1)", "\\p{IsLatin}", "\\p{InGreek}"]
)
def test_what_cannot_be_had_says_so(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"supported here|cannot be used here"):
        JavaPattern(pattern)
