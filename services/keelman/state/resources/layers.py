"""Mappings over others that they do not change: a transaction's or a plan's version of a snapshot. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_GONE: Any = object()
_UNKNOWN: Any = object()


class Layer(MutableMapping[K, V]):
    """Reads go through to the mapping below; writes stay here. Costs grow with the writes, not with the mapping
    below."""

    __slots__ = ("_below", "_own")

    def __init__(self, below: Mapping[K, V]) -> None:
        self._below = below
        self._own: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        value: V = self._own.get(key, _UNKNOWN)
        if value is _UNKNOWN:
            return self._below[key]
        if value is _GONE:
            raise KeyError(key)
        return value

    def get(self, key: K, default: Any = None) -> Any:
        """Returns the value of a key, or the default, as a dict's."""
        value = self._own.get(key, _UNKNOWN)
        if value is _UNKNOWN:
            return self._below.get(key, default)
        return default if value is _GONE else value

    def __contains__(self, key: object) -> bool:
        value = self._own.get(key, _UNKNOWN)  # type: ignore[arg-type]
        return key in self._below if value is _UNKNOWN else value is not _GONE

    def __setitem__(self, key: K, value: V) -> None:
        self._own[key] = value

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self._own[key] = _GONE

    def __iter__(self) -> Iterator[K]:
        own = self._own
        yield from (key for key in self._below if own.get(key, _UNKNOWN) is not _GONE)
        yield from [key for key, value in own.items() if value is not _GONE and key not in self._below]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def changes(self) -> dict[K, V | None]:
        """Returns the writes: the value, or None for a deleted key."""
        return {key: None if value is _GONE else value for key, value in self._own.items()}

    def write_to(self, other: MutableMapping[K, V]) -> None:
        """Applies the writes to another mapping."""
        for key, value in self._own.items():
            if value is _GONE:
                other.pop(key, None)
            else:
                other[key] = value
