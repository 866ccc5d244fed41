"""Hides secrets in all that this process logs and answers.

One list a process, since all of it writes one log: code that reads a secret adds it, code that shows a text hides it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import quote

HIDDEN = "[hidden]"  # what Java's Password prints
LEAST = 4  # shorter ones are in every other word
MOST, MAX_PASSING = 20_000, 1_000
ORDINARY = frozenset(("true", "false", "null", "none"))


class Redactor:
    """Secrets, and what is shown instead of each. Safe to use from any thread."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._passing: dict[str, str] = {}
        self._longest_first: tuple[tuple[str, str], ...] | None = ()  # one may be a part of another
        self._lock = threading.Lock()

    def add(self, secrets: Mapping[str, str], *, passing: bool = False) -> None:
        """Hides these from now on: what is shown instead, by secret. What was a secret before stays hidden.

        Of a secret of several lines each line is hidden too. Nothing is hidden that is shorter than four characters
        or an ordinary word: it would be found everywhere. Of very many those are forgotten that were not added for
        longest. `passing` ones are of a request and may be anybody's: of these few are kept, and for none of them
        another is forgotten that is in use.
        """
        kept, most = (self._passing, MAX_PASSING) if passing else (self._shown, MOST)
        found = [(form, shown) for secret, shown in secrets.items() for form in _forms(secret)]
        with self._lock:
            for form, shown in found:
                before = kept.pop(form, None)
                # A reference says more than that something is hidden.
                kept[form] = before if before is not None and shown == HIDDEN else shown
                if kept[form] != before:
                    self._longest_first = None
            while len(kept) > most:
                del kept[next(iter(kept))]
                self._longest_first = None

    def hide(self, text: str) -> str:
        """The text without secrets."""
        for secret, shown in self._sorted():
            if secret in text:
                text = text.replace(secret, shown)
        return text

    def _sorted(self) -> tuple[tuple[str, str], ...]:
        found = self._longest_first
        if found is None:
            with self._lock:
                every = {**self._passing, **self._shown}
                found = self._longest_first = tuple(sorted(every.items(), key=lambda one: -len(one[0])))
        return found

    def hidden(self, value: Any) -> Any:
        """The same for whatever a log record holds: texts, and texts in mappings and sequences."""
        if not self._sorted():
            return value
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {self.hidden(k): self.hidden(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.hidden(one) for one in value]
        text = repr(value)
        hidden = self.hide(text)
        return value if hidden == text else hidden


REDACTOR = Redactor()
"""This process's."""


def hide_in_log(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog's processor: no record leaves with a secret. After the one that makes text of exceptions."""
    for key, value in event.items():
        if not key.startswith("_"):  # structlog's own
            event[key] = REDACTOR.hidden(value)
    return event


def _forms(secret: str) -> set[str]:
    """How a secret may stand in a text: as it is, quoted, escaped, or line by line."""
    found: set[str] = set()
    for one in {secret, secret.strip(), *(line.strip() for line in secret.splitlines())}:
        if len(one) >= LEAST and one.lower() not in ORDINARY:
            found |= {one, repr(one)[1:-1], json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1]}
            found |= {quote(one, safe="")}
    return found
