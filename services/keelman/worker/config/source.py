"""Finds the file and line of a worker property, for messages about it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from keelman.model.errors import KeelmanError, Violation
from keelman.runtime.logs.redaction import REDACTOR
from keelman.worker.config.file import placed_properties

GIVEN = "--properties"
PROPERTY = "property"
"""The key in an error's metadata for the property that it is about, which need not be set."""


@dataclass(frozen=True, slots=True)
class PropertySource:
    """Properties as they are written: those of a file, and over them the `given` beside it.

    `flags` are the words that people know some of those given by."""

    file: Path | None
    given: Mapping[str, str]
    flags: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path | None, own: Mapping[str, str], flags: Mapping[str, str] | None = None) -> PropertySource:
        """Reads the properties. Raises InvalidArgument for a file that cannot be read."""
        placed = {} if file is None else placed_properties(file)
        lines = {key: line for key, (_, line) in placed.items()}
        return cls(file, own, flags or {}, lines, {**{key: text for key, (text, _) in placed.items()}, **own})

    @contextlib.contextmanager
    def named(self, *, all_ours: bool = False) -> Iterator[None]:
        """Adds the property's place to errors that leave the block. `all_ours`: they are about this source, whether or
        not they name a property."""
        try:
            yield
        except KeelmanError as error:
            problems = error.violations or (Violation(error.metadata.get("field", ""), error.message),)
            if all_ours or PROPERTY in error.metadata or any(_key(problem) in self.written for problem in problems):
                error.message = self._message(problems)
                error.args = (error.message,)
            raise

    def _message(self, problems: Sequence[Violation]) -> str:
        placed = list(dict.fromkeys((self._place(problem), self._text(problem)) for problem in problems))
        if len(placed) == 1 and placed[0][0]:
            place, text = placed[0]
            return f"{f'{self.file}, ' if place != GIVEN else ''}{place}: {text}"
        texts = "; ".join(f"{place}: {text}" if place else text for place, text in placed)
        message = texts if len(placed) == 1 else f"{len(placed)} things are wrong: {texts}"
        return f"{self.file}: {message}" if self.file else message

    def _place(self, problem: Violation) -> str:
        key = _key(problem)
        if self.file is None:
            return ""
        if key in self.given:
            return GIVEN
        return f"line {self.lines[key]}" if key in self.lines else ""

    def _text(self, problem: Violation) -> str:
        text, key = REDACTOR.hide(problem.description), _key(problem)
        return self.flags[key] + text.removeprefix(key) if key in self.flags and text.startswith(f"{key}:") else text


def _key(problem: Violation) -> str:
    return problem.field or problem.description.partition(":")[0]
