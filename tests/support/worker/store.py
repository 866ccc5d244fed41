"""The callbacks that a store needs from its worker, for tests of a store without a worker around it."""

from __future__ import annotations

from collections.abc import Callable

from keelman.worker.storage.store import StoreCallbacks


def _ignore_change() -> None:
    """Ignores a change."""


def _ignore_level(logger: str, level: str) -> None:
    """Ignores a logger's level."""


def _always() -> bool:
    return True


def store_callbacks(
    *, may_write: Callable[[], bool] = _always, on_change: Callable[[], None] = _ignore_change
) -> StoreCallbacks:
    """Callbacks of a store that may write, by default, and whose changes are ignored."""
    return StoreCallbacks(may_write, on_change, _ignore_level)
