"""Matches patterns of callers without the risk that a pattern occupies this process for ever.

A pattern with a quantifier inside a quantifier, such as `(a+)+b`, may take a time that doubles with each character.
Java's engine has the same weakness. Here such a pattern is tried in a process of its own, which is killed after 2 s.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

from keelman.connect.java.regex import JavaPattern

SECONDS = 2.0
MOST_QUANTIFIERS = 3
"""So many quantifiers beside each other take at most the third power of a text's length."""
_QUANTIFIED_GROUP = re.compile(r"\)[*+{]")
_QUANTIFIER = re.compile(r"(?<!\\)(?:[*+]|\{\d*,\d*\})")
_PROGRAM = (
    "import json, re, sys; pattern, text = json.load(sys.stdin); "
    "print(int(re.compile(pattern, re.ASCII).fullmatch(text) is not None))"
)


class SlowPattern(ValueError):
    """A pattern takes too long for a text."""


def matches_in_time(pattern: JavaPattern, text: str, seconds: float = SECONDS) -> bool:
    """Whether the whole text matches. Raises SlowPattern."""
    if not may_be_slow(pattern.pattern):
        return pattern.matches(text)
    command, given = (sys.executable, "-I", "-S", "-c", _PROGRAM), json.dumps((pattern.translated, text))
    try:
        tried = subprocess.run(command, input=given, capture_output=True, text=True, timeout=seconds, check=True)
    except subprocess.TimeoutExpired:
        raise SlowPattern(f"{pattern.pattern!r} was not matched within {seconds:g} s") from None
    return tried.stdout.strip() == "1"


def may_be_slow(pattern: str) -> bool:
    """Whether a Java pattern repeats a group, or has many quantifiers."""
    return bool(_QUANTIFIED_GROUP.search(pattern)) or len(_QUANTIFIER.findall(pattern)) > MOST_QUANTIFIERS
