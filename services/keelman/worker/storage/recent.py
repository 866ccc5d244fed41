"""Keeps the newest offset of records about each thing: of the last ten thousand things. Pure."""

from __future__ import annotations

from typing import Generic, TypeVar

MOST = 10_000
T = TypeVar("T")


class Recent(Generic[T]):
    """For the config topic's state: the possible earlier effects of a request that is done again."""

    def __init__(self) -> None:
        self._offsets: dict[T, int] = {}

    def note(self, what: T, offset: int) -> None:
        """Notes that a record about it has this offset."""
        self._offsets.pop(what, None)
        self._offsets[what] = offset
        if len(self._offsets) > MOST:
            del self._offsets[next(iter(self._offsets))]

    def since(self, what: T, offset: int | None) -> bool:
        """Returns whether its newest record has this offset or a later one; never for None."""
        return offset is not None and self._offsets.get(what, -1) >= offset
