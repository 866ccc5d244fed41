"""A finding of `keelman doctor`: a problem and its remedy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: the check that found it, its place, the problem, and the remedy."""

    check: str
    subject: str
    problem: str
    remedy: str
