"""Compares a manifest with its present resource, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field with its former and wanted value; None for a value that is not set."""

    field: str
    former: Any
    wanted: Any


def differences(former: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldDifference]:
    """Returns the fields in which two specs differ, nested fields by their paths, sorted by name."""
    return list(_between(former, after, ""))


def _between(former: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[FieldDifference]:
    for key in sorted(former.keys() | after.keys()):
        old, new, full = former.get(key), after.get(key), f"{path}.{key}" if path else key
        if old == new:
            continue
        if _is_inner(old) and _is_inner(new):
            yield from _between(old or {}, new or {}, full)
        else:
            yield FieldDifference(full, old, new)


def _is_inner(value: Any) -> bool:
    """Tells whether a value has fields of its own, or is unset, where the other side may have fields."""
    return value is None or isinstance(value, Mapping)
