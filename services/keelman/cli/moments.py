"""Reads moments that people type: a time from now or ago, or a date."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from keelman.cli.options import duration_of
from keelman.model.errors import InvalidArgument

_SPAN = re.compile(r"([0-9]{1,6})([dhm])")


def checked_end(text: str, now: datetime) -> datetime:
    """Returns the end that --expires gives. Raises InvalidArgument, also for an end in the past."""
    legal = "a time from now such as 90d, 12h or 30m, or a date such as 2027-01-31, in the future"
    end = _moment("--expires", text, now, 1, legal)
    if end <= now:
        raise InvalidArgument.of("--expires", text, legal)
    return end


def checked_past(option: str, text: str, now: datetime) -> datetime:
    """Returns the moment in the past that an option gives. Raises InvalidArgument, also for one in the future."""
    legal = "a time ago such as 90d, 12h or 30m, or a date such as 2027-01-31, in the past"
    begin = _moment(option, text, now, -1, legal)
    if begin > now:
        raise InvalidArgument.of(option, text, legal)
    return begin


def _moment(option: str, text: str, now: datetime, sign: int, legal: str) -> datetime:
    try:
        seconds = duration_of(text, _SPAN)
        moment = datetime.fromisoformat(text) if seconds is None else now + sign * timedelta(seconds=seconds)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidArgument.of(option, text, legal) from None
