"""Defines our keys for the life of every connector: restarts after a failure, and when a task counts as stalled.

The worker's properties of the same names apply to connectors that do not set them.
"""

from __future__ import annotations

from keelman.connect.config.connector_keys import numbered
from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type, Width, at_least


def _key(name: str, kind: Type, default: int, least: int, doc: str) -> ConfigKey:
    return ConfigKey(name, kind, default, Importance.LOW, doc, at_least(least), group="Restarts", width=Width.SHORT)


ATTEMPTS = _key(
    "keelman.restart.max.attempts", Type.INT, -1, -1, "Times it is tried again; -1: no end, 0: as in Connect."
)
FIRST_MS = _key(
    "keelman.restart.backoff.ms", Type.LONG, 1_000, 1, "Pause before the first of these; each is twice as long."
)
MAX_MS = _key("keelman.restart.backoff.max.ms", Type.LONG, 300_000, 1, "Longest pause.")
RESET_MS = _key(
    "keelman.restart.reset.after.ms", Type.LONG, 600_000, 0, "Time without failure after which it is whole again."
)
STALL_MS = _key(
    "keelman.stall.after.ms", Type.LONG, 60_000, -1, "Time without progress until a task is stalled; -1: never."
)


def life_keys() -> ConfigDef:
    """Returns all of them, in the order of a form."""
    return ConfigDef(*numbered(1, (ATTEMPTS, FIRST_MS, MAX_MS, RESET_MS, STALL_MS)))
