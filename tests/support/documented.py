"""The keys that a page of docs/ lists in its tables."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from support.places import ROOT

_TABLE = re.compile(r"^\| (?:key|keys) \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")
_BRACES = re.compile(r"\{([^}]*)\}")


def documented_keys(page: str) -> set[str]:
    """The keys in the first column of each table of keys.

    `{a,b}` is expanded; * matches any rest. Prefixes of keys are left out.
    """
    text = (ROOT / "docs" / page).read_text()
    cells = [line.split("|")[1] for table in _TABLE.findall(text) for line in table.splitlines()]
    return {key for cell in cells for written in _CODE.findall(cell) for key in _expanded(written) if key[-1] != "."}


def lacking(page: str, tried: set[str]) -> set[str]:
    """The keys of a page that are not among these keys."""
    return {
        key
        for key in documented_keys(page)
        if not any(re.fullmatch(re.escape(key).replace(r"\*", ".+"), item) for item in tried)
    }


def _expanded(written: str) -> Iterator[str]:
    parts = _BRACES.split(written)
    choices = [part.split(",") if number % 2 else [part] for number, part in enumerate(parts)]
    return ("".join(chosen) for chosen in itertools.product(*choices))
