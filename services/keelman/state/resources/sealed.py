"""Seals the secrets in the rows of nouns, and opens them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from keelman.state.database.sealing import sealer_of

SPEC = "spec"


def sealed(session: AsyncSession, noun: str, values: dict[str, Any]) -> dict[str, Any]:
    """Returns the values of a noun's row with the secrets in its spec sealed."""
    if SPEC not in values:
        return values
    return values | {SPEC: sealer_of(session).seal(values[SPEC], noun, values["name"], SPEC)}


def opened(session: AsyncSession, noun: str, row: Any) -> Any:
    """Returns a row with its secrets opened. Raises FailedPrecondition (KEY_WRONG)."""
    values = dict(row._mapping)
    if SPEC in values:
        values[SPEC] = sealer_of(session).open(values[SPEC], noun, values["name"], SPEC)
    return SimpleNamespace(**values)
