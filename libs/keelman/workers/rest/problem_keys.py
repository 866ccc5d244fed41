"""The keys of a refused configuration: a header of a worker's answer has those that Connect's message does not name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

PROBLEMS = "keelman-problems"
"""Header of a refusal: a JSON list of key and text of each problem, where Connect's text does not name the whole
key."""


def header_list(headers: Mapping[str, str], name: str) -> Sequence[Any]:
    """Returns the list in a header of JSON; empty if the header is absent or not a list."""
    try:
        values = json.loads(headers.get(name, "[]"))
    except ValueError:
        return ()
    return values if isinstance(values, list) else ()


def with_keys(message: str, problems: Sequence[Any]) -> str:
    """Returns the message with each problem's key before its text. `problems` are pairs of key and text."""
    place = 0
    for key, text in problems:
        if (at := message.find(text, place)) >= 0:
            message = f"{message[:at]}{key}: {message[at:]}"
            place = at + len(key) + len(text)
    return message
