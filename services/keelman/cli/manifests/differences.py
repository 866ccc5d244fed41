"""Compares what a manifest says of a resource with what is there, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """One field; None for a side where it is not set."""

    field: str
    former: Any
    wanted: Any


def differences(former: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[Difference]:
    """The fields that two specs have differently, those within fields by their paths, in the order of their names."""
    return list(_between(former, wanted, ""))


def _between(former: Mapping[str, Any], wanted: Mapping[str, Any], path: str) -> Iterator[Difference]:
    for key in sorted(former.keys() | wanted.keys()):
        old, new, full = former.get(key), wanted.get(key), f"{path}.{key}" if path else key
        if old == new:
            continue
        if _is_inner(old) and _is_inner(new):
            yield from _between(old or {}, new or {}, full)
        else:
            yield Difference(full, old, new)


def _is_inner(value: Any) -> bool:
    """Whether a value has fields of its own; one that is not set may have them on the other side."""
    return value is None or isinstance(value, Mapping)
