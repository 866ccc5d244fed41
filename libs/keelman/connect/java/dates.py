"""Formats and parses times by patterns of java.text.SimpleDateFormat, in English and UTC, as leniently as Java does.

https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/text/SimpleDateFormat.html
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import attrgetter

from keelman.connect.java.calendars import CUTOVER_YEAR, DAY_MS, Moment, days_by
from keelman.connect.java.numbers import cut
from keelman.connect.times import MILLISECOND, Time, moment, ms_of

_LETTERS = frozenset("GyYMLwWDdFEuaHkKhmsSzZX")
_NUMERIC = frozenset("yYwWDdFuHkKhmsS")
_MONTHS = list(calendar.month_name)[1:]
_DAYS = list(calendar.day_name)
_ZONE = re.compile(r"(?:GMT(?=[+-]\d\d?:))?([+-])(\d{2}(?!:)|(?<=GMT.)\d\d?(?=:)):?(\d{2})")


class DatePatternError(ValueError):
    """A pattern is not legal; the message is Java's."""


class ParseError(ValueError):
    """A text does not match its pattern."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A run of equal letters in a pattern, or a text between such runs, without a letter."""

    letter: str
    count: int
    text: str = ""

    @property
    def numeric(self) -> bool:
        return self.letter in _NUMERIC or (self.letter in ("M", "L") and self.count < 3)


@dataclass(slots=True)
class _Found:
    """The fields of a time that a text has given so far, by the pattern's letters."""

    numbers: dict[str, int] = field(default_factory=dict)
    evening: bool | None = None
    offset: timedelta = timedelta()
    before_christ: bool = False

    def give(self, letter: str, number: int) -> None:
        """Sets a field, which then counts as the last one given."""
        self.numbers.pop(letter, None)
        self.numbers[letter] = number


class JavaDateFormat:
    """One pattern; used by any thread."""

    def __init__(self, pattern: str) -> None:
        """Raises PatternError."""
        self.pattern = pattern
        self._pieces = _pieces(pattern)
        self._quick = QuickFormat.of(self._pieces)
        self.unit_ms = min((_UNITS_MS.get(piece.letter, DAY_MS) for piece in self._pieces), default=DAY_MS)
        """Times that differ by less than this have the same text."""

    def format(self, value: Time) -> str:
        """Returns the text of a time."""
        if self._quick is not None and isinstance(value, datetime):
            at = value if value.tzinfo is UTC else value.astimezone(UTC)
            if at.year > CUTOVER_YEAR:
                return self._quick.format(at)
        moment_of = Moment(ms_of(value))
        return "".join(_written(piece, moment_of) if piece.letter else piece.text for piece in self._pieces)

    def parse(self, text: str) -> Time:
        """Returns the time of a text; ignores any text after it. Raises ParseError."""
        quick = None if self._quick is None else self._quick.parse(text)
        if quick is not None:
            return quick
        fields, at = _Found(), 0
        for index, piece in enumerate(self._pieces):
            if not piece.letter:
                if not text.startswith(piece.text, at):
                    raise ParseError(f'Unparseable date: "{text}"')
                at += len(piece.text)
                continue
            follower = self._pieces[index + 1] if index + 1 < len(self._pieces) else None
            abutting = follower is not None and follower.numeric and piece.numeric
            behind = _read(piece, text, at, fields, abutting=abutting)
            if behind is None:
                raise ParseError(f'Unparseable date: "{text}"')
            at = behind
        return _time(fields)


_UNITS_MS = {"S": 1, "s": 1000, "m": 60_000, **dict.fromkeys("HkKha", 3_600_000)}
_TOKEN = re.compile(r"''|'((?:[^']|'')*)('?)|([A-Za-z])\3*|[^A-Za-z']+")


def _pieces(pattern: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    for token in _TOKEN.finditer(pattern):
        letter = token[3] or ""
        if letter:
            if letter not in _LETTERS:
                raise DatePatternError(f"Illegal pattern character '{letter}'")
            count = len(token[0])
            if letter == "X" and count > 3:
                raise DatePatternError(f"invalid ISO 8601 format: length={count}")
            pieces.append(_Piece(letter, count))
            continue
        if token[1] is not None and not token[2]:
            raise DatePatternError("Unterminated quote")
        text = "'" if token[0] == "''" else token[0] if token[1] is None else token[1].replace("''", "'")
        if pieces and not pieces[-1].letter:
            text = pieces.pop().text + text
        pieces.append(_Piece("", 0, text))
    return pieces


_NUMBERS: Mapping[str, Callable[[Moment], int]] = {
    "M": lambda at: at.month,
    "L": lambda at: at.month,
    "w": lambda at: at.week[1],
    "W": lambda at: at.week_of_month,
    "D": lambda at: at.day_of_year,
    "d": lambda at: at.day,
    "F": lambda at: at.weekday_in_month,
    "u": lambda at: at.weekday,
    "H": lambda at: at.hour,
    "k": lambda at: at.hour or 24,
    "K": lambda at: at.hour % 12,
    "h": lambda at: at.hour % 12 or 12,
    "m": lambda at: at.minute,
    "s": lambda at: at.second,
    "S": lambda at: at.ms,
}


def _written(piece: _Piece, at: Moment) -> str:
    letter, count = piece.letter, piece.count
    if letter in "yY":
        year = at.year_of_era if letter == "y" else at.week[0]
        digits = str(abs(year)).zfill(count)
        return ("-" if year < 0 else "") + (digits[-2:] if count == 2 else digits)
    if letter in "MLE" and (count > 2 or letter == "E"):
        name = _DAYS[at.weekday - 1] if letter == "E" else _MONTHS[at.month - 1]
        return name if count > 3 else name[:3]
    if letter in _NUMBERS:
        return str(_NUMBERS[letter](at)).zfill(count)
    if letter == "z" and count > 3:
        return "Coordinated Universal Time"
    era = "AD" if at.year > 0 else "BC"
    return {"a": "AM" if at.hour < 12 else "PM", "G": era, "z": "UTC", "Z": "+0000", "X": "Z"}[letter]


def _read(piece: _Piece, text: str, at: int, fields: _Found, *, abutting: bool) -> int | None:
    """Reads a piece; returns the place after it, or None when the text does not match."""
    letter, count = piece.letter, piece.count
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    if piece.numeric:
        digits = re.compile(rf"-?\d{{1,{count}}}" if abutting else r"-?\d+").match(text, at)
        if digits is None:
            return None
        number = _int(digits[0])
        if letter in "yY" and count <= 2 and len(digits[0]) == 2:
            number = _near(number)
        fields.give("M" if letter == "L" else letter, number)
        return digits.end()
    if letter in "MLE":
        names, letter = (_DAYS, "u") if letter == "E" else (_MONTHS, "M")
        return _named(text, at, names, letter, fields)
    return _half(letter, text, at, fields) if letter in "aG" else _zone(piece, text, at, fields)


def _int(digits: str) -> int:
    """Returns the low 32 bits of a long; a number beyond a long is clipped to 32 bits."""
    number = int(digits)
    return cut(number if -(1 << 63) <= number < 1 << 63 else float(number), 32)


def _half(letter: str, text: str, at: int, fields: _Found) -> int | None:
    word = text[at : at + 2].upper()
    if word not in (("AM", "PM") if letter == "a" else ("BC", "AD")):
        return None
    if letter == "a":
        fields.evening = word == "PM"
    else:
        fields.before_christ = word == "BC"
    return at + 2


def _near(number: int) -> int:
    """Expands a year of two digits: within 80 years before and 20 years after now."""
    now = datetime.now(UTC).year
    century = (now - 80) // 100 * 100
    year = century + number
    return year if year > now - 80 else year + 100


def _named(text: str, at: int, names: list[str], letter: str, fields: _Found) -> int | None:
    rest = text[at:].lower()
    for length in (None, 3):
        for index, name in enumerate(names):
            word = name[:length].lower()
            if rest.startswith(word):
                fields.give(letter, index + 1)
                return at + len(word)
    return None


def _zone(piece: _Piece, text: str, at: int, fields: _Found) -> int | None:
    if piece.letter == "X":
        form = {1: r"([+-])(\d{2})()", 2: r"([+-])(\d{2})(\d{2})", 3: r"([+-])(\d{2}):(\d{2})"}[piece.count]
        if text[at : at + 1] == "Z":
            return at + 1
        zone = re.compile(form).match(text, at)
    else:
        zone = _ZONE.match(text, at)
    if zone is not None:
        minutes = int(zone[2]) * 60 + int(zone[3] or 0)
        fields.offset = timedelta(minutes=minutes if zone[1] == "+" else -minutes)
        return zone.end()
    word = re.compile(r"[A-Za-z]+").match(text, at)
    if piece.letter == "X" or word is None:
        return None
    name = word[0].upper()
    if name not in _HOURS or (name == "GMT" and text[word.end() : word.end() + 1] in ("+", "-")):
        return None
    fields.offset = timedelta(hours=_HOURS[name])
    return word.end()


_HOURS = {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "CET": 1, "CEST": 2}
_HOURS |= dict.fromkeys(("UTC", "GMT"), 0)


def _time(fields: _Found) -> Time:
    """Returns the time; carries excess values over; beyond 64 bits of ms it wraps around, like Java."""
    numbers = fields.numbers
    year = next((numbers[letter] for letter in reversed(numbers) if letter in "yY"), 1970)
    if fields.before_christ:
        year = 1 - year
    if "H" in numbers or "k" in numbers:
        hours = numbers["H"] if "H" in numbers else numbers["k"] % 24
    else:
        hours = numbers.get("h", 0) % 12 if numbers.get("h") == 12 else numbers.get("h", numbers.get("K", 0))
        hours += 12 if fields.evening else 0
    seconds = hours * 3600 + numbers.get("m", 0) * 60 + numbers.get("s", 0)
    days, ms = divmod(seconds * 1000 + numbers.get("S", 0), DAY_MS)
    total = days_by(numbers, year, days) * DAY_MS + ms - fields.offset // MILLISECOND
    return moment(cut(total, 64))


@dataclass(frozen=True, slots=True)
class QuickFormat:
    """Writes and reads a pattern at once: numbers of the usual lengths, each at most once, with texts between."""

    form: str
    numbers: Callable[[datetime], tuple[int, ...]]
    text: re.Pattern[str]
    letters: tuple[str, ...]

    @classmethod
    def of(cls, pieces: Sequence[_Piece]) -> QuickFormat | None:
        """Returns the format for such a pattern; None for other patterns."""
        letters = [piece.letter for piece in pieces if piece.letter]
        if not letters or len(set(letters)) < len(letters):
            return None
        if any(_USUAL.get(piece.letter, (0, ""))[0] != piece.count for piece in pieces if piece.letter):
            return None
        form, text = "", ""
        for index, piece in enumerate(pieces):
            # Digits extend to the end of the number, unless another number follows at once.
            if piece.letter:
                abutting = index + 1 < len(pieces) and pieces[index + 1].letter
                form += f"%0{piece.count}d"
                text += f"([0-9]{{{piece.count}}})" + ("" if abutting else r"(?!\d)")
            else:
                form += piece.text.replace("%", "%%")
                text += re.escape(piece.text)
        return cls(form, _numbers(letters), re.compile(text), tuple(letters))

    def format(self, at: datetime) -> str:
        """Returns the text of a time in UTC."""
        return self.form % self.numbers(at)

    def parse(self, text: str) -> datetime | None:
        """Returns the time of a text; None if the text needs the lenient parser."""
        match = self.text.match(text)
        if match is None:
            return None
        of = dict(zip(self.letters, map(int, match.groups()), strict=True)).get
        try:
            time = datetime(
                of("y", 1970), of("M", 1), of("d", 1), of("H", 0), of("m", 0), of("s", 0), of("S", 0) * 1000, UTC
            )
        except ValueError:
            return None
        return time if time.year > CUTOVER_YEAR else None


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
