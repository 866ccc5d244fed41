"""Hides secrets in all log lines and answers of this process.

One list a process, since all of it writes one log: code that reads a secret adds it, code that shows a text hides it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import quote

HIDDEN = "[hidden]"  # what Java's Password prints
LEAST = 4  # shorter texts are in every other word
MOST, MAX_PASSING = 20_000, 1_000
ORDINARY = frozenset(("true", "false", "null", "none"))


class Redactor:
    """Secrets, and the text shown instead of each. Safe to use from any thread."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._passing: dict[str, str] = {}
        self._longest_first: tuple[tuple[str, str], ...] | None = ()  # a secret may be a part of another
        self._lock = threading.Lock()

    def add(self, secrets: Mapping[str, str], *, passing: bool = False) -> None:
        """Hides these secrets from now on; the values are the texts shown instead. Earlier secrets stay hidden.

        Each line of a secret of several lines is hidden too. Texts shorter than four characters and ordinary words are
        not hidden: they would be found everywhere. Of too many secrets, those added longest ago are forgotten.
        `passing` secrets belong to a request and may come from any client: few of these are kept, and they displace no
        secret that is in use.
        """
        kept, most = (self._passing, MAX_PASSING) if passing else (self._shown, MOST)
        found = [(form, shown) for secret, shown in secrets.items() for form in _forms(secret)]
        with self._lock:
            for form, shown in found:
                before = kept.pop(form, None)
                # A reference tells more than that a text is hidden.
                kept[form] = before if before is not None and shown == HIDDEN else shown
                if kept[form] != before:
                    self._longest_first = None
            while len(kept) > most:
                del kept[next(iter(kept))]
                self._longest_first = None

    def hide(self, text: str) -> str:
        """Returns the text without secrets."""
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
        """Returns a log record's value without secrets: texts, and texts in mappings and sequences."""
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
    """structlog's processor: no record leaves with a secret. Runs after the processor that turns exceptions into
    text."""
    for key, value in event.items():
        if not key.startswith("_"):  # structlog's own
            event[key] = REDACTOR.hidden(value)
    return event


def _forms(secret: str) -> set[str]:
    """Returns the forms that a secret may have in a text: as it is, quoted, escaped, or line by line."""
    found: set[str] = set()
    for one in {secret, secret.strip(), *(line.strip() for line in secret.splitlines())}:
        if len(one) >= LEAST and one.lower() not in ORDINARY:
            found |= {one, repr(one)[1:-1], json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1]}
            found |= {quote(one, safe="")}
    return found
