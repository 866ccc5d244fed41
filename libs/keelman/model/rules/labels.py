"""Parses labels of workers and of connectors' placement: `zone=a,disk=ssd`."""

from __future__ import annotations

import re

from keelman.model.errors import InvalidArgument

LEGAL = "name=value, comma-separated, of letters, digits and . _ - /, e.g. zone=a,disk=ssd"
_WORD = re.compile(r"[A-Za-z0-9._/-]{1,63}")


def labels_of(text: str, *, key: str) -> dict[str, str]:
    """Returns the labels in a text; none for an empty one. Raises InvalidArgument naming the `key`."""
    labels: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, separator, value = (part.strip() for part in pair.partition("="))
        if not (separator and _WORD.fullmatch(name) and _WORD.fullmatch(value)):
            raise InvalidArgument.of(key, pair, LEGAL)
        if labels.setdefault(name, value) != value:
            raise InvalidArgument.of(key, text, f"each name once, not {name} twice")
    return labels
