"""The usual patterns of times, written and read in one go."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class QuickFormat:
    """Numbers of the usual lengths, each at most once, and texts between them."""

    form: str
    getters: tuple[Callable[[datetime], int], ...]
    text: re.Pattern[str]
    letters: tuple[str, ...]

    @classmethod
    def of(cls, pieces: Sequence[tuple[str, int, str]]) -> QuickFormat | None:
        """Of letters with their count, or texts where there is no letter; None for other patterns."""
        letters = [letter for letter, _, _ in pieces if letter]
        if not letters or len(set(letters)) < len(letters):
            return None
        if any(_USUAL.get(letter, (0,))[0] != count for letter, count, _ in pieces if letter):
            return None
        form, text = "", ""
        for index, (letter, count, between) in enumerate(pieces):
            # Digits go on to the end of the number, unless another one follows at once.
            abutting = index + 1 < len(pieces) and pieces[index + 1][0]
            form += f"%0{count}d" if letter else between.replace("%", "%%")
            text += f"([0-9]{{{count}}})" + ("" if abutting else r"(?!\d)") if letter else re.escape(between)
        return cls(form, tuple(_USUAL[letter][1] for letter in letters), re.compile(text), tuple(letters))

    def format(self, at: datetime) -> str:
        """The text of a time in UTC."""
        return self.form % tuple([getter(at) for getter in self.getters])

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


_USUAL: dict[str, tuple[int, Callable[[datetime], int]]] = {
    "y": (4, lambda at: at.year),
    "M": (2, lambda at: at.month),
    "d": (2, lambda at: at.day),
    "H": (2, lambda at: at.hour),
    "m": (2, lambda at: at.minute),
    "s": (2, lambda at: at.second),
    "S": (3, lambda at: at.microsecond // 1000),
}
