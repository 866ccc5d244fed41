"""Reads a worker's rules for cross-origin requests and response headers from its properties, in Connect's words."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

from keelman.connect.java.regex import JavaPattern, PatternError
from keelman.model.errors import InvalidArgument
from keelman.workers.properties.reader import PropertyReader

ORIGIN, METHODS = "access.control.allow.origin", "access.control.allow.methods"
HEADERS = "response.http.headers.config"
USUAL_METHODS = ("GET", "POST", "HEAD")
ACTIONS = ("set", "add", "setDate", "addDate")


@dataclass(frozen=True, slots=True)
class HeaderRule:
    """A rule of `response.http.headers.config`: a header set, or added, on every answer.

    The value of a `date` is the milliseconds that it is ahead of the answer.
    """

    add: bool
    date: bool
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class RestAccess:
    """A worker's rules for browsers and proxies in front of it."""

    origins: tuple[JavaPattern, ...] | None
    """Patterns that an origin must match wholly; None without CORS, empty for any origin."""
    methods: tuple[str, ...]
    headers: tuple[HeaderRule, ...]


def read_access(reader: PropertyReader) -> RestAccess:
    """Reads the rules from the worker's properties; the reader notes errors."""
    raw = reader.raw
    methods = tuple(m for m in raw.get(METHODS, "").split(",") if m.strip())
    return RestAccess(
        origins=reader.take(lambda: _origins(raw.get(ORIGIN, "")), None),
        methods=methods or USUAL_METHODS,
        headers=read_header_rules(reader),
    )


def read_header_rules(reader: PropertyReader) -> tuple[HeaderRule, ...]:
    """Reads the header rules; the reader notes errors."""
    return reader.take(lambda: _rules(reader.raw.get(HEADERS, "")), ())


def _origins(text: str) -> tuple[JavaPattern, ...] | None:
    if not text.strip():
        return None
    patterns = [part.strip() for part in text.split(",") if part.strip()]
    if "*" in patterns:
        return ()
    try:
        return tuple(JavaPattern(pattern, "i") for pattern in patterns)
    except PatternError as error:
        raise InvalidArgument.of(
            ORIGIN, text, f"* or origins, comma-separated, as regular expressions ({error})"
        ) from None


def _rules(text: str) -> tuple[HeaderRule, ...]:
    rows = list(csv.reader([text], skipinitialspace=True, escapechar="\\")) if text.strip() else []
    return tuple(_rule(rule.strip()) for row in rows for rule in row if rule.strip())


def _rule(text: str) -> HeaderRule:
    """Parses one `action name:value`. The messages are Connect's, after the name of the property."""
    words = text.split(maxsplit=1)
    if len(words) != 2:
        raise _illegal(f"Invalid format of header config '{text}'. Expected: '[action] [header name]:[header value]'")
    action, header = words
    if action.lower() not in [a.lower() for a in ACTIONS]:
        legal = ", ".join(ACTIONS)
        raise _illegal(f"Invalid header config action: '{action}'. Expected one of [{legal}]")
    parts: Sequence[str] = header.strip().split(":")
    if len(parts) != 2 or not parts[1]:
        raise _illegal(
            f"Invalid format of header name and header value pair '{header}'. Expected: '[header name]:[header value]'"
        )
    name, value = parts[0].strip(), parts[1].strip()
    if not name or re.search(r"\s", name):
        raise _illegal(f"Invalid header name '{name}'. The '[header name]' cannot contain whitespace")
    date = action.lower().endswith("date")
    if date and not re.fullmatch(r"-?[0-9]{1,18}", value):
        raise _illegal(f"'{value}' of {name} is no number of milliseconds")
    return HeaderRule(action.lower().startswith("add"), date, name, value)


def _illegal(reason: str) -> InvalidArgument:
    return InvalidArgument(f"{HEADERS}: {reason}", metadata={"field": HEADERS})
