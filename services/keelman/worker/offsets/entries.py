"""Decodes the entries of a request to alter offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """One entry of PATCH /connectors/x/offsets; None for a null or missing part."""

    partition: dict[str, Any] | None
    offset: dict[str, Any] | None
