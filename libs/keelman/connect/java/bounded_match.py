"""Matches patterns of callers in bounded time, whatever the pattern and the text.

Python's engine tries every way through a pattern: `(a+)+b` has twice as many for each more character, and no other
thread of the process runs meanwhile. Most patterns have few ways and are left to that engine. For others there is a
machine that takes the ways in the same order, but never the same step at the same place again, as Java's engine does
for such patterns. Back-references can need more: then the machine gives up after `MOST_TRIES`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from keelman.connect.errors import ConnectError
from keelman.connect.java.pattern_steps import Op, Step, TooLong, parsed, steps_of, ways

MOST_WAYS = 2_000_000
LONG_TEXT = 256
"""Up to this length `MOST_WAYS` holds: names of topics are at most 249 characters long."""
MOST_TRIES = 500_000
PRICE = 4
"""So many tries count for one with back-references: it takes the groups into account."""
REMEMBERED = 4_000
"""Texts whose result a pattern remembers: a search for topics asks for the same names again and again."""
Marks = tuple[int, ...]
"""Begin and end of the whole match and of each group; -1 where there is none."""


class SlowPattern(ConnectError):
    """A pattern takes too long for a text."""

    tolerable = False


class BoundedPattern:
    """A pattern in Python's syntax, with re.ASCII."""

    def __init__(self, translated: str, written: str) -> None:
        """`written` is the pattern as its author wrote it. Raises re.error, OverflowError and RecursionError as
        Python's `re` does."""
        self.compiled = re.compile(translated, re.ASCII)
        self._written = written
        self._parts = parsed(translated)
        self._few_ways = ways(self._parts) <= MOST_WAYS
        self._remembered: dict[str, bool] = {}

    def matches(self, text: str) -> bool:
        """Whether the whole text matches. Raises SlowPattern."""
        if self._is_quick(text):
            return self.compiled.fullmatch(text) is not None
        known = self._remembered.get(text)
        if known is None:
            known = self._run(text, whole=True) is not None
            if len(self._remembered) < REMEMBERED and len(text) <= LONG_TEXT:
                self._remembered[text] = known
        return known

    def first(self, text: str) -> Marks | None:
        """Returns the marks of the first match in the text, None without one. Raises SlowPattern."""
        if not self._is_quick(text):
            return self._run(text, whole=False)
        match = self.compiled.search(text)
        return None if match is None else tuple(at for span in match.regs for at in span)

    def _is_quick(self, text: str) -> bool:
        return self._few_ways and len(text) <= LONG_TEXT

    @cached_property
    def _steps(self) -> list[Step]:
        return steps_of(self._parts)

    def _run(self, text: str, *, whole: bool) -> Marks | None:
        try:
            return _Run(self._steps, self.compiled.groups, text, whole).found()
        except (TooLong, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise SlowPattern(f"Pattern {self._written!r} takes too long to match: {why}") from None


class _Run:
    """One text."""

    def __init__(self, steps: list[Step], groups: int, text: str, whole: bool) -> None:
        self._steps = steps
        self._none: Marks = (-1,) * (2 * groups + 2)
        self._text = text
        self._codes = list(map(ord, text))
        self._whole = whole
        self._refers = any(op is Op.SAME for op, _, _ in steps)
        self._price = PRICE if self._refers else 1
        self._left = MOST_TRIES

    def found(self) -> Marks | None:
        """Returns the marks of the first match. Raises TooLong."""
        seen: set[object] = set()
        for start in range(1 if self._whole else len(self._codes) + 1):
            end = self._go(0, start, self._none, seen)
            if end is not None:
                return (start, *end[1:])
        return None

    def _go(self, step: int, at: int, marks: Marks, seen: set[object]) -> Marks | None:
        """Returns the marks at the end of the first way that leads there: the second is the end's place.

        What is behind a step at a place does not depend on the way there, but for back-references."""
        stack = [(step, at, marks)]
        while stack:
            step, at, marks = stack.pop()
            while step >= 0:
                op, first, second = self._steps[step]
                state = (step, at, marks) if self._refers else (step, at)
                if state in seen:  # a loop ends once it matches nothing
                    step = second if op is Op.LOOP else -1
                    continue
                seen.add(state)
                self._left -= self._price
                if self._left < 0:
                    raise TooLong(f"it was given up after {MOST_TRIES // self._price} tries at one text")
                if op is Op.CHAR:
                    step, at = (step + 1, at + 1) if self._is_one(at, first, second) else (-1, at)
                elif op is Op.SPLIT:
                    stack.append((second, at, marks))
                    step = first
                elif op is Op.LOOP:
                    stack.append((first[1], at, marks))
                    step = first[0]
                elif op is Op.JUMP:
                    step = first
                elif op is Op.DONE or (op is Op.END and (at == len(self._codes) or not self._whole)):
                    return (marks[0], at, *marks[2:])
                else:
                    step, at, marks = self._other(step, at, marks)
        return None

    def _is_one(self, at: int, firsts: list[int], lasts: list[int]) -> bool:
        if at >= len(self._codes):
            return False
        place = bisect_right(firsts, self._codes[at]) - 1
        return place >= 0 and self._codes[at] <= lasts[place]

    def _other(self, step: int, at: int, marks: Marks) -> tuple[int, int, Marks]:
        """Returns where to go on after one of the rarer steps: at step -1 nowhere."""
        op, first, second = self._steps[step]
        if op is Op.MARK:
            return step + 1, at, (*marks[:first], at, *marks[first + 1 :])
        if op is Op.AT:
            return (step + 1 if self._is_at(first, at) else -1), at, marks
        if op is Op.SAME:
            end = self._end_of_same(at, marks[2 * first], marks[2 * first + 1], any_case=second)
            return (step + 1 if end >= 0 else -1), end, marks
        if op in (Op.ATOM, Op.LOOK):
            back, wanted = second or (0, True)
            inner = self._go(step + 1, at - back, marks, set()) if at >= back else None
            if inner is not None and wanted:
                return first, inner[1] if op is Op.ATOM else at, (*marks[:2], *inner[2:])
            return (first if inner is None and not wanted else -1), at, marks
        return -1, at, marks

    def _end_of_same(self, at: int, begin: int, end: int, *, any_case: bool) -> int:
        """Returns where the text ends that a group matched before and that is here again; -1 if it is not."""
        if begin < 0:
            return -1
        here, there = self._text[at : at + end - begin], self._text[begin:end]
        return at + end - begin if here == there or (any_case and here.lower() == there.lower()) else -1

    def _is_at(self, place: str, at: int) -> bool:
        if place == "AT_BEGINNING_STRING":
            return at == 0
        if place == "AT_END_STRING":
            return at == len(self._codes)
        sides = (self._text[at - 1 : at] if at else "", self._text[at : at + 1])
        before, after = (side.isascii() and (side.isalnum() or side == "_") for side in sides)
        return (before != after) == (place == "AT_BOUNDARY")
