"""Seals the secrets in the rows of resources, and opens them: those of a payload's spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from keelman.state.database.sealing import sealer_of

SPEC = "spec"


def sealed(session: AsyncSession, row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of a row with its secrets sealed."""
    payload = with_secrets(row["payload"], row["noun"], row["name"], sealer_of(session).seal)
    return {**row, "payload": payload}


def opened(session: AsyncSession, row: Any) -> Mapping[str, Any]:
    """Returns the payload of a row with its secrets opened. Raises FailedPrecondition (KEY_WRONG)."""
    return with_secrets(row.payload, row.noun, row.name, sealer_of(session).open)


def with_secrets(payload: Mapping[str, Any], noun: str, name: str, change: Callable[..., Any]) -> Mapping[str, Any]:
    """Returns a payload whose spec was changed by `change`, which gets the spec and its place."""
    return {**payload, SPEC: change(payload[SPEC], noun, name, SPEC)} if SPEC in payload else payload
