"""Keeps the last lines that this process logged, as they were printed, within a limit."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any


class OwnLines:
    """Keeps nothing until `keep` sets a limit. Safe to use from any thread."""

    def __init__(self) -> None:
        self._most = 0
        self._size = 0
        self._lines: deque[str] = deque()
        self._lock = threading.Lock()

    def keep(self, characters: int) -> None:
        """Keeps this many characters in all from now on; the oldest lines give way."""
        with self._lock:
            self._most = characters
            self._shrink()

    def noting(self, renderer: Any) -> Any:
        """Returns a structlog renderer that also keeps each rendered event."""

        def rendered(logger: Any, method: str, event: Any) -> Any:
            text = renderer(logger, method, event)
            if self._most and isinstance(text, str):
                self._note(text)
            return text

        return rendered

    def text(self) -> str:
        """Returns the lines, oldest first, each with its end."""
        with self._lock:
            return "".join(self._lines)

    def _note(self, text: str) -> None:
        line = text + "\n"
        with self._lock:
            self._lines.append(line)
            self._size += len(line)
            self._shrink()

    def _shrink(self) -> None:
        while self._lines and self._size > self._most:
            self._size -= len(self._lines.popleft())


OWN = OwnLines()
