"""The forms of values that Couchbase's connector has: durations, sizes, and keys that hold for one collection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from keelman.connect.errors import ConfigValueError
from keelman.couchbase.manifest import Collection

_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)|0", re.IGNORECASE)
_SIZE = re.compile(r"(\d+)(b|k|m|g)|0", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_CONTEXT = re.compile(r"(couchbase\.[^\[\]]+)\[([^\[\]]*)\]")
NOT_SERVED = frozenset({"couchbase.jsonpath.filter"})
NO_TOPIC = "names no topic: write a name, in which ${bucket}, ${scope} and ${collection} may stand"
CONTEXTUAL = frozenset({"couchbase.topic"}) | NOT_SERVED
"""Keys that may be given for one collection: `couchbase.topic[scope.collection]`."""


def seconds(text: str) -> float:
    """A duration such as 100ms. Raises ValueError."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError("must be 0, or a number with ms, s, m, h or d behind it, such as 100ms")
    return int(match[1]) * _SECONDS[match[2].lower()] if match[1] else 0.0


def size_bytes(text: str) -> int:
    """A size such as 16m, in powers of 1024. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("must be 0, or a number with b, k, m or g behind it, such as 16m")
    return int(match[1]) * _BYTES[match[2].lower()] if match[1] else 0


def duration(name: str, value: Any) -> None:
    """A validator. Raises ConfigValueError."""
    _checked(name, value, seconds)


def size(name: str, value: Any) -> None:
    """A validator. Raises ConfigValueError."""
    _checked(name, value, size_bytes)


def collection_of(text: str) -> Collection:
    """A collection named as `scope.collection`. Raises ValueError."""
    scope, dot, name = text.strip().partition(".")
    if not (scope and dot and name) or "." in name:
        raise ValueError(f"{text.strip()!r} is no collection: write scope.collection")
    return Collection(scope, name)


def topics_by_collection(config: Mapping[str, str]) -> dict[Collection, str]:
    """The topics that are set for single collections. Raises ConfigValueError for names that are none."""
    topics = {}
    for name, value in config.items():
        match = _CONTEXT.fullmatch(name)
        if match is not None and match[1] == "couchbase.topic":
            try:
                if not value.strip():
                    raise ValueError(NO_TOPIC)
                topics[collection_of(match[2])] = value
            except ValueError as error:
                raise ConfigValueError(name, value, str(error)) from None
    return topics


def wrong_contexts(config: Mapping[str, str]) -> list[ConfigValueError]:
    """Keys for one collection that can only be set for all, in the official connector's words, or that are not served;
    names that are no collection's."""
    problems = []
    for name, value in config.items():
        match = _CONTEXT.fullmatch(name)
        if match is not None and match[1] in NOT_SERVED and value.strip():
            problems.append(ConfigValueError(name, value, "is not served: leave it empty"))
        elif match is not None and match[1] not in CONTEXTUAL:
            text = (
                f"Invalid config property '{name}' ; property '{match[1]}' does not support contextual overrides "
                "(square brackets)"
            )
            problems.append(ConfigValueError(name, value, whole=text))
    try:
        topics_by_collection(config)
    except ConfigValueError as error:
        problems.append(error)
    return problems


def _checked(name: str, value: Any, parse: Any) -> None:
    try:
        parse(value or "")
    except ValueError as error:
        raise ConfigValueError(name, value, str(error)) from None
