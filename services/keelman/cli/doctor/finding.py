"""A finding of `keelman doctor`: what is wrong somewhere, and what helps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: what was looked at, where, what is wrong, and what to do about it."""

    check: str
    subject: str
    problem: str
    remedy: str
