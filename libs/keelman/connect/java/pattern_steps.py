"""Turns a pattern in Python's syntax, as `regex.py` writes it, into the steps of a machine: `bounded_match.py`.

It also estimates in how many ways Python's own engine may try a pattern, before it has matched a text or given it up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto
from math import inf
from typing import Any

from keelman.connect.java import char_sets as sets

_parser: Any = re._parser  # type: ignore[attr-defined]
_CONST: Any = re._constants  # type: ignore[attr-defined]
MOST_STEPS = 5_000
STAR = 64
"""So many ways count for a character that is repeated."""


class Op(Enum):
    """What a step does with the text at its place; `Step` has the operands."""

    CHAR = auto()
    SPLIT = auto()
    LOOP = auto()
    JUMP = auto()
    MARK = auto()
    AT = auto()
    SAME = auto()
    LOOK = auto()
    ATOM = auto()
    FAIL = auto()
    DONE = auto()
    END = auto()


Step = tuple[Op, Any, Any]
"""CHAR: first and last code points of ranges. SPLIT, JUMP: the steps to go on with, in this order. LOOP: these steps
as a pair, and the one behind the loop. MARK: where a group begins or ends. AT: a place in the text. SAME: a group's
number, and whether any case matches. LOOK and ATOM: the step behind their own steps; LOOK also: how far to go back, and
whether it must match."""


class TooLong(ValueError):
    """A pattern has too many steps."""


def parsed(pattern: str) -> Any:
    """Returns the pattern's parts, as Python's own compiler has them."""
    return _parser.parse(pattern, re.ASCII)


def ways(parts: Any) -> float:
    """Returns about how many ways through the parts there are; infinite where that depends on the text."""
    total = 1.0
    for op, operand in parts:
        total *= _ways(op.name, operand)
    return total


def _ways(op: str, operand: Any) -> float:
    if op == "BRANCH":
        return sum(map(ways, operand[1]))
    if op == "ATOMIC_GROUP":
        return ways(operand)
    if op in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
        return ways(operand[-1])
    return _ways_of_repeat(*operand) if op.endswith("_REPEAT") else 1.0


def _ways_of_repeat(least: int, most: Any, body: Any) -> float:
    if most == 1:
        return ways(body) + (least == 0)
    if len(body) == 1 and body[0][0].name in ("LITERAL", "IN"):
        return float(min(int(most) - least + 1, STAR))
    return inf


def steps_of(parts: Any) -> list[Step]:
    """Returns the steps. Raises TooLong."""
    writer = _Writer()
    writer.write(parts)
    writer.add(Op.END)
    return writer.steps


class _Writer:
    """One pass over the parts."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._any_case = False

    def add(self, op: Op, first: Any = None, second: Any = None) -> int:
        """Adds a step and returns its number."""
        if len(self.steps) >= MOST_STEPS:
            raise TooLong(f"it has more than {MOST_STEPS} steps")
        self.steps.append((op, first, second))
        return len(self.steps) - 1

    def write(self, parts: Any) -> None:
        """Adds the steps of parts that follow each other."""
        for op, operand in parts:
            getattr(self, f"_{op.name.lower()}")(operand)

    def _literal(self, code: int) -> None:
        self._char([(code, code)])

    def _in(self, items: Any) -> None:
        ranges = [(0, sets.LAST)] if any(op.name == "CATEGORY" for op, _ in items) else []  # only all have one
        ranges += [(operand, operand) if op.name == "LITERAL" else operand for op, operand in items if not ranges]
        self._char(ranges)

    def _char(self, ranges: Sequence[tuple[int, int]]) -> None:
        ordered = sorted(ranges)
        self.add(Op.CHAR, [first for first, _ in ordered], [last for _, last in ordered])

    def _failure(self, _: Any) -> None:
        self.add(Op.FAIL)

    def _branch(self, operand: Any) -> None:
        jumps: list[int] = []
        *others, last = operand[1]
        for branch in others:
            split = self.add(Op.SPLIT)
            self.write(branch)
            jumps.append(self.add(Op.JUMP))
            self.steps[split] = (Op.SPLIT, split + 1, len(self.steps))
        self.write(last)
        for jump in jumps:
            self.steps[jump] = (Op.JUMP, len(self.steps), None)

    def _subpattern(self, operand: Any) -> None:
        group, added, _, parts = operand
        before, self._any_case = self._any_case, self._any_case or bool(added & re.IGNORECASE)
        if group is None:
            self.write(parts)
        else:
            self.add(Op.MARK, 2 * group)
            self.write(parts)
            self.add(Op.MARK, 2 * group + 1)
        self._any_case = before

    def _max_repeat(self, operand: Any) -> None:
        self._repeat(*operand, greedy=True)

    def _min_repeat(self, operand: Any) -> None:
        self._repeat(*operand, greedy=False)

    def _repeat(self, least: int, most: Any, body: Any, *, greedy: bool) -> None:
        for _ in range(least):
            self.write(body)
        if most is _CONST.MAXREPEAT:
            loop = self.add(Op.LOOP)
            self.write(body)
            self.add(Op.JUMP, loop)
            self.steps[loop] = (Op.LOOP, self._order(loop, greedy), len(self.steps))
            return
        splits: list[int] = []
        for _ in range(most - least):
            splits.append(self.add(Op.SPLIT))
            self.write(body)
        for split in splits:
            self.steps[split] = (Op.SPLIT, *self._order(split, greedy))

    def _order(self, split: int, greedy: bool) -> tuple[int, int]:
        after = (split + 1, len(self.steps))
        return after if greedy else (after[1], after[0])

    def _possessive_repeat(self, operand: Any) -> None:
        self._apart(Op.ATOM, [(_CONST.MAX_REPEAT, operand)])

    def _atomic_group(self, parts: Any) -> None:
        self._apart(Op.ATOM, parts)

    def _assert(self, operand: Any) -> None:
        self._look(*operand, wanted=True)

    def _assert_not(self, operand: Any) -> None:
        self._look(*operand, wanted=False)

    def _look(self, direction: int, parts: Any, *, wanted: bool) -> None:
        back = parts.getwidth()[0] if direction < 0 else 0
        self._apart(Op.LOOK, parts, (back, wanted))

    def _apart(self, op: Op, parts: Any, more: Any = None) -> None:
        """Adds steps that run on their own and end with DONE."""
        begin = self.add(op)
        self.write(parts)
        self.add(Op.DONE)
        self.steps[begin] = (op, len(self.steps), more)

    def _at(self, place: Any) -> None:
        self.add(Op.AT, place.name)

    def _groupref(self, group: int) -> None:
        self.add(Op.SAME, group, self._any_case)
