"""The usual patterns of times, written and read in one go."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter


@dataclass(frozen=True, slots=True)
class QuickFormat:
    """Numbers of the usual lengths, each at most once, and texts between them."""

    form: str
    numbers: Callable[[datetime], tuple[int, ...]]
    text: re.Pattern[str]
    letters: tuple[str, ...]

    @classmethod
    def of(cls, pieces: Sequence[tuple[str, int, str]]) -> QuickFormat | None:
        """Of letters with their count, or texts where there is no letter; None for other patterns."""
        letters = [letter for letter, _, _ in pieces if letter]
        if not letters or len(set(letters)) < len(letters):
            return None
        if any(_USUAL.get(letter, (0, ""))[0] != count for letter, count, _ in pieces if letter):
            return None
        form, text = "", ""
        for index, (letter, count, between) in enumerate(pieces):
            # Digits go on to the end of the number, unless another one follows at once.
            abutting = index + 1 < len(pieces) and pieces[index + 1][0]
            form += f"%0{count}d" if letter else between.replace("%", "%%")
            text += f"([0-9]{{{count}}})" + ("" if abutting else r"(?!\d)") if letter else re.escape(between)
        return cls(form, _numbers(letters), re.compile(text), tuple(letters))

    def format(self, at: datetime) -> str:
        """The text of a time in UTC."""
        return self.form % self.numbers(at)

    def parse(self, text: str) -> datetime | None:
        """The time of a text; None where it has to be read with care."""
        found = self.text.match(text)
        if found is None:
            return None
        of = dict(zip(self.letters, map(int, found.groups()), strict=True)).get
        try:
            return datetime(
                of("y", 1970), of("M", 1), of("d", 1), of("H", 0), of("m", 0), of("s", 0), of("S", 0) * 1000, UTC
            )
        except ValueError:
            return None


def _numbers(letters: list[str]) -> Callable[[datetime], tuple[int, ...]]:
    names = [_USUAL[letter][1] for letter in letters]
    if len(names) > 1 and "S" not in letters:
        return attrgetter(*names)
    return lambda at: tuple([getattr(at, name) // (1000 if name == "microsecond" else 1) for name in names])


_USUAL = {
    "y": (4, "year"),
    "M": (2, "month"),
    "d": (2, "day"),
    "H": (2, "hour"),
    "m": (2, "minute"),
    "s": (2, "second"),
    "S": (3, "microsecond"),
}
