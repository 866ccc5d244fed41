"""Keeps the last log lines of this process about each connector, within a limit."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Mapping, MutableMapping
from typing import Any

EACH = 200
LONGEST = 20_000


class RecentLines:
    """Keeps nothing until `keep` sets a limit. Safe to use from any thread."""

    def __init__(self) -> None:
        self._most = 0
        self._lines = 0
        self._connectors: OrderedDict[str, deque[Mapping[str, Any]]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, lines: int) -> None:
        """Keeps this many lines in all from now on, at most 200 of a connector; the quietest connectors give way."""
        with self._lock:
            self._most = lines
            self._shrink()

    def note(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """A structlog processor, after all that change an event: keeps events that name a connector."""
        connector = event.get("connector")
        if self._most and isinstance(connector, str):
            fields = {key: _plain(value) for key, value in event.items() if not key.startswith("_")}
            with self._lock:
                lines = self._connectors.setdefault(connector, deque())
                self._connectors.move_to_end(connector)
                lines.append(fields)
                self._lines += 1
                if len(lines) > EACH:
                    lines.popleft()
                    self._lines -= 1
                self._shrink()
        return event

    def of(self, connector: str, most: int = EACH) -> list[Mapping[str, Any]]:
        """Returns the connector's last lines, oldest first."""
        with self._lock:
            return list(self._connectors.get(connector, ()))[-most:] if most > 0 else []

    def _shrink(self) -> None:
        while self._lines > self._most:
            _, gone = self._connectors.popitem(last=False)
            self._lines -= len(gone)


def _plain(value: Any) -> Any:
    """Returns a value in a form that JSON can hold, cut at LONGEST."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


RECENT = RecentLines()
