"""Converts the wire contract's enum values to words: RUNNING for CLUSTER_STATE_RUNNING."""

from __future__ import annotations

from functools import cache
from typing import Any


def word(enum: Any, value: int) -> str:
    """A value as a word; `enum` is the generated enum, e.g. ClusterState. Raises ValueError for an unknown value."""
    return str(enum.Name(value)).removeprefix(prefix_of(enum.DESCRIPTOR.name))


@cache
def prefix_of(enum: str) -> str:
    """What the names of an enum's values begin with, as buf's lint wants it: CLUSTER_STATE_ for ClusterState."""
    return "".join(f"_{c}" if c.isupper() and at else c for at, c in enumerate(enum)).upper() + "_"
