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
        forms, most = (self._passing, MAX_PASSING) if passing else (self._shown, MOST)
        pairs = [(form, shown) for secret, shown in secrets.items() for form in _forms(secret)]
        with self._lock:
            for form, shown in pairs:
                before = forms.pop(form, None)
                # A reference tells more than that a text is hidden.
                forms[form] = before if before is not None and shown == HIDDEN else shown
                if forms[form] != before:
                    self._longest_first = None
            while len(forms) > most:
                del forms[next(iter(forms))]
                self._longest_first = None

    def hide(self, text: str) -> str:
        """Returns the text without secrets."""
        for secret, shown in self._sorted():
            if secret in text:
                text = text.replace(secret, shown)
        return text

    def _sorted(self) -> tuple[tuple[str, str], ...]:
        ordered = self._longest_first
        if ordered is None:
            with self._lock:
                every = {**self._passing, **self._shown}
                ordered = self._longest_first = tuple(sorted(every.items(), key=lambda pair: -len(pair[0])))
        return ordered

    def hidden(self, value: Any) -> Any:
        """Returns a log record's value without secrets: texts, and texts in mappings and sequences."""
        if not self._sorted():
            return value
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {self.hidden(k): self.hidden(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.hidden(item) for item in value]
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
    forms: set[str] = set()
    for form in {secret, secret.strip(), *(line.strip() for line in secret.splitlines())}:
        if len(form) >= LEAST and form.lower() not in ORDINARY:
            forms |= {form, repr(form)[1:-1], json.dumps(form)[1:-1], json.dumps(form, ensure_ascii=False)[1:-1]}
            forms |= {quote(form, safe="")}
    return forms
