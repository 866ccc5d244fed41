"""Java's calendar in UTC: the Julian one before 15 October 1582, the Gregorian one from then on.

https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/GregorianCalendar.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

DAY_MS = 86_400_000
CUTOVER_YEAR = 1582
_CUTOVER = -141_427  # 1582-10-15, in days since the epoch
_CYCLE = 146_097  # days of 400 Gregorian years
_BEFORE_EPOCH = {True: 719_468, False: 719_470}  # days from March 1st of the year 0 to the epoch, in each calendar


def day_of(year: int, month: int, day: int, *, gregorian: bool) -> int:
    """Returns the days since the epoch of a day in one calendar; the year 0 is 1 BC. `day` may be any number."""
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    days = year * 365 + year // 4 + (153 * month + 2) // 5 + day - 1
    return days - _BEFORE_EPOCH[gregorian] + (year // 400 - year // 100 if gregorian else 0)


def hybrid_day(year: int, month: int, day: int) -> int:
    """Returns the days since the epoch of an existing day; for a day skipped in 1582 those of the Julian day."""
    days = day_of(year, month, day, gregorian=True)
    return days if days >= _CUTOVER else day_of(year, month, day, gregorian=False)


def _civil(days: int) -> tuple[int, int, int]:
    """Returns year, month and day of a number of days since the epoch."""
    gregorian = days >= _CUTOVER
    days += _BEFORE_EPOCH[gregorian]
    years = 0
    if gregorian:
        years, days = 400 * (days // _CYCLE), days % _CYCLE
        year = (days - days // 1460 + days // 36_524 - days // (_CYCLE - 1)) // 365
        days -= 365 * year + year // 4 - year // 100
    else:
        year = (4 * days + 3) // 1461
        days -= 365 * year + year // 4
    month = (5 * days + 2) // 153
    day = days - (153 * month + 2) // 5 + 1
    return years + year + (month >= 10), month + 3 if month < 10 else month - 9, day


class Moment:
    """The fields of a time, given as any number of ms since the epoch."""

    def __init__(self, ms: int) -> None:
        self.days, self.ms_of_day = divmod(ms, DAY_MS)
        self.year, self.month, self.day = _civil(self.days)

    @property
    def hour(self) -> int:
        """The hour of the day, from 0 to 23."""
        return self.ms_of_day // 3_600_000

    @property
    def minute(self) -> int:
        """The minute of the hour."""
        return self.ms_of_day // 60_000 % 60

    @property
    def second(self) -> int:
        """The second of the minute."""
        return self.ms_of_day // 1000 % 60

    @property
    def ms(self) -> int:
        """The millisecond of the second."""
        return self.ms_of_day % 1000

    @property
    def year_of_era(self) -> int:
        """The year; before Christ counted back from 1."""
        return self.year if self.year > 0 else 1 - self.year

    @property
    def weekday(self) -> int:
        """The weekday; 1 is Monday, 7 Sunday."""
        return (self.days + 3) % 7 + 1

    @property
    def day_of_year(self) -> int:
        """The day of the year, from 1."""
        return self.days - hybrid_day(self.year, 1, 1) + 1

    @cached_property
    def week(self) -> tuple[int, int]:
        """The week's year and number, as in the United States: weeks begin on Sunday, the first has January 1st."""
        if self.days >= _week_begin(hybrid_day(self.year + 1, 1, 1)):
            return self.year + 1, 1
        return self.year, (self.days - _week_begin(hybrid_day(self.year, 1, 1))) // 7 + 1

    @property
    def week_of_month(self) -> int:
        """The week of the month, from 1."""
        return (self.days - _week_begin(self._month_begin)) // 7 + 1

    @property
    def weekday_in_month(self) -> int:
        """The number of this weekday within the month, from 1."""
        return (self.days - self._month_begin) // 7 + 1

    @cached_property
    def _month_begin(self) -> int:
        return hybrid_day(self.year, self.month, 1)


def _week_begin(days: int) -> int:
    """Returns the Sunday on or before a day."""
    return _on_or_before(days, 7)


def _on_or_before(days: int, weekday: int) -> int:
    return days - (days + 3 - (weekday - 1)) % 7


@dataclass(frozen=True, slots=True)
class _Rule:
    """The rule for a day, from the given fields."""

    year: int
    month: int
    """Any number; 13 is January of the next year."""
    given: Mapping[str, int]
    by: str
    """The letter of the deciding field."""

    def days(self, *, gregorian: bool) -> int:
        """Returns the days since the epoch in one of the calendars."""
        year, month = self.year + (self.month - 1) // 12, (self.month - 1) % 12 + 1
        first = day_of(year, month, 1, gregorian=gregorian)
        if self.by in "Dw":
            first = day_of(self.year, 1, 1, gregorian=gregorian)
            if gregorian and self.year == CUTOVER_YEAR:
                first = max(first, _CUTOVER)
        if self.by == "D":
            return first + self.given["D"] - 1
        if self.by in "wW":
            week = _week_begin(first) + 7 * (self.given.get(self.by, 1) - 1)
            return week + self.given.get("u", 7) % 7
        if self.by == "F":
            return self._by_weekday(first, day_of(year, month + 1, 1, gregorian=gregorian) - first)
        return first + self.given.get("d", 1) - 1

    def _by_weekday(self, first: int, length: int) -> int:
        weekday, number = self.given.get("u", 7), self.given.get("F", 1)
        if number >= 0:
            return _on_or_before(first + 7 * number - 1, weekday)
        return _on_or_before(first + length + 7 * (number + 1) - 1, weekday)


def days_by(numbers: Mapping[str, int], year: int, before: int) -> int:
    """Returns the days since the epoch for fields, each by its letter in a pattern, in the order in which they were
    given; M is 1 for January and u 7 for Sunday. `before` days are added, which also affects the choice of calendar."""
    rule = _Rule(year, numbers.get("M", 1), numbers, _deciding(numbers))
    in_gregorian, in_julian = (before + rule.days(gregorian=gregorian) for gregorian in (True, False))
    if year > CUTOVER_YEAR and in_gregorian >= _CUTOVER:
        return in_gregorian
    if year < CUTOVER_YEAR:
        return in_julian if in_julian < _CUTOVER else _after(in_julian, in_julian)
    if rule.by in "Dw":
        return in_julian
    return _after(in_gregorian, in_julian)


def _after(in_gregorian: int, in_julian: int) -> int:
    return in_gregorian if in_gregorian >= _CUTOVER and in_julian >= _CUTOVER else in_julian


def _deciding(numbers: Mapping[str, int]) -> str:
    """Returns the letter of the day field that was given last; with `u` a week counts as a day field."""
    order = list(numbers)
    weekday = "u" in numbers

    def place(letter: str) -> int:
        return order.index(letter) + 1 if letter in numbers else 0

    def with_weekday(letter: str) -> int:
        return max(place(letter), place("u")) if weekday and letter in numbers else 0

    ranks: list[tuple[str, Callable[[str], int]]] = [("d", place), ("D", place)]
    ranks += [(letter, with_weekday) for letter in "WFw"]
    complete = {letter: (rank(letter), place(letter)) for letter, rank in ranks}
    alone = {"W": place("W"), "F": max(place("F"), place("u")), "w": place("w")}
    best = max(complete, key=lambda char: complete[char])
    if complete[best][0]:
        return best
    letter = max(alone, key=lambda char: alone[char])
    return letter if alone[letter] else "d"
