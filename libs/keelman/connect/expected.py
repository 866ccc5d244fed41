"""Legal values: in words, and as a test."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable
from typing import Any, NamedTuple

from keelman.connect.errors import ConnectError


class WrongAnswer(ConnectError):
    """A connector returned an illegal value. `connector` is its class, set by code that knows it."""

    tolerable = False
    connector = ""

    def __str__(self) -> str:
        return f"{self.connector}: {super().__str__()}" if self.connector else super().__str__()


class Expected(NamedTuple):
    """A legal value: in words, and as a test."""

    text: str
    fits: Callable[[Any], bool]

    def expect(self, what: str, value: object) -> None:
        """Raises WrongAnswer, which calls the value `what`, unless it fits."""
        if not self.fits(value):
            raise WrongAnswer(f"{what} is {_shown(value)}; expected {self.text}")


def _shown(value: object) -> str:
    """Returns the value's type, and the beginning of plain data: other values may be long, or raise when shown."""
    if value is None:
        return "None"
    kind = f"of type {type(value).__name__}"
    if inspect.iscoroutine(value):
        value.close()
        return f"{kind}, which is never awaited"
    if isinstance(value, str | int | float):
        return f"{kind}: {value!r:.100}"
    return f"{kind}: {reprlib.repr(value)}" if type(value) in (list, tuple, dict) else kind
