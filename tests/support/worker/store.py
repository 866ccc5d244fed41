"""What a store needs of its worker, for tests of a store without a worker around it."""

from __future__ import annotations

from collections.abc import Callable

from keelman.worker.storage.store import StoreCallbacks


def _ignore_change() -> None:
    """Nobody waits for a change."""


def _ignore_level(logger: str, level: str) -> None:
    """No logger is set."""


def _always() -> bool:
    return True


def store_callbacks(
    *, may_write: Callable[[], bool] = _always, on_change: Callable[[], None] = _ignore_change
) -> StoreCallbacks:
    """A store that may write, unless told otherwise, and whose changes nobody follows."""
    return StoreCallbacks(may_write, on_change, _ignore_level)
