"""The steps of a plugin import, by name."""

from __future__ import annotations

FETCH = "fetch"
STEPS = (FETCH,)
