"""Defines keys about bad records that Connect does not have: a budget for skipped records, dead letters of sources."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from keelman.connect.config.connector_keys import numbered, sink_keys
from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type, Width, at_least
from keelman.connect.config.rules import Validator, refuse

PREFIX = "errors.deadletterqueue."
GROUP = "Bad Records"


def _percent(name: str, value: float | None) -> None:
    if value is not None and not (math.isfinite(value) and 0 <= value <= 100):
        raise refuse(name, value, "Value must be a number between 0 and 100")


def _key(name: str, kind: Type, default: Any, doc: str, validator: Validator) -> ConfigKey:
    return ConfigKey(name, kind, default, Importance.LOW, doc, validator, group=GROUP, width=Width.SHORT)


BUDGET = _key(
    "keelman.errors.budget",
    Type.LONG,
    -1,
    "With errors.tolerance=all: most records that a task may pass over within the window, before it fails; -1: all.",
    at_least(-1),
)
BUDGET_PERCENT = _key(
    "keelman.errors.budget.percent",
    Type.DOUBLE,
    100,
    "The same as a share of the records that it read in the window, once it passed over ten; 100: all.",
    _percent,
)
BUDGET_WINDOW = _key(
    "keelman.errors.budget.window.ms", Type.LONG, 3_600_000, "How long a record passed over counts.", at_least(1)
)


def budget_keys() -> ConfigDef:
    """Returns our keys of every connector."""
    return ConfigDef(*numbered(1, (BUDGET, BUDGET_PERCENT, BUDGET_WINDOW)))


def dead_letter_keys(*, sink: bool) -> ConfigDef:
    """Returns the keys of dead letters: Connect's for a sink; for a source the same, except that headers describe the
    error by default."""
    keys = [key for name, key in sink_keys().keys.items() if name.startswith(PREFIX)]
    if sink:
        return ConfigDef(*keys)
    of_source = (replace(key, default=True if key.type is Type.BOOLEAN else key.default, group=GROUP) for key in keys)
    return ConfigDef(*numbered(4, tuple(of_source)))
