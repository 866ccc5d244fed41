"""Remembers the brokers of clusters that clients of this process have used recently: the next client of a cluster
begins with them.

Otherwise each client learns them over an extra connection: such connections were a quarter of the cost that a copy run
without anything to copy caused its slot and its broker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

KEPT_SECONDS = 60.0
MOST = 64


@dataclass(slots=True)
class _Met:
    at: float
    brokers: dict[Any, Any]
    features: dict[str, int] | None = None


class KnownBrokers:
    """Entries by client properties: another user, password or address counts as another cluster. Each entry is used
    for a minute at most. For one loop's clients; a forked process begins empty."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._met: dict[frozenset[tuple[str, str]], _Met] = {}
        os.register_at_fork(after_in_child=self._met.clear)

    def of(self, properties: Mapping[str, str]) -> dict[Any, Any]:
        """Returns aiokafka's brokers by node; empty when none is known."""
        met = self._find(properties)
        return {} if met is None else dict(met.brokers)

    def met(self, properties: Mapping[str, str], brokers: Mapping[Any, Any]) -> None:
        """Called when a broker has just reported these."""
        self._met[frozenset(properties.items())] = _Met(self._clock(), dict(brokers))
        while len(self._met) > MOST:
            del self._met[next(iter(self._met))]

    def forget(self, properties: Mapping[str, str]) -> None:
        """Called when none of these brokers answers."""
        self._met.pop(frozenset(properties.items()), None)

    def features(self, properties: Mapping[str, str]) -> dict[str, int] | None:
        """Returns the cluster's finalized features; None when not known."""
        met = self._find(properties)
        return None if met is None else met.features

    def note_features(self, properties: Mapping[str, str], features: dict[str, int]) -> None:
        """Called when a broker has just reported these."""
        met = self._find(properties)
        if met is not None:
            met.features = features

    def _find(self, properties: Mapping[str, str]) -> _Met | None:
        key = frozenset(properties.items())
        met = self._met.get(key)
        if met is not None and self._clock() - met.at >= KEPT_SECONDS:
            del self._met[key]
            return None
        return met


BROKERS = KnownBrokers()
