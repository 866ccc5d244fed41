"""The store as the state service opens it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from keelman.state.clusters.settling import settle
from keelman.state.database.key_source import KeySource
from keelman.state.nouns.registry import NOUNS
from keelman.state.resources.store import ResourceStore
from keelman.state.secrets import opening


def open_store(url: str, *, key_file: KeySource | None = None) -> AbstractAsyncContextManager[ResourceStore]:
    """Opens the store of a path or a postgresql:// URL."""
    return opening.open_store(url, NOUNS, settle, key_file=key_file)
