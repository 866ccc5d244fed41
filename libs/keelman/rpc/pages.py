"""Cuts lists into pages by tokens that name the last key: pages stay stable while things come and go."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import TypeVar

from keelman.api.copy.v1.copy_run_pb2 import CopyRun
from keelman.model.errors import InvalidArgument

T = TypeVar("T")
DEFAULT_SIZE, LARGEST_SIZE = 100, 1000


def page_limit(page_size: int) -> int:
    """Returns the number of items to give. Raises InvalidArgument for an illegal size."""
    if not 0 <= page_size <= LARGEST_SIZE:
        raise InvalidArgument.of("page_size", page_size, f"0 to {LARGEST_SIZE}")
    return page_size or DEFAULT_SIZE


def token_for(key: str) -> str:
    """Returns the token of a page that ends with this key."""
    return base64.urlsafe_b64encode(b"1" + key.encode()).decode()


def key_of(token: str) -> str:
    """Returns the key after which the page begins; empty for the first page. Raises InvalidArgument for a foreign
    token."""
    if not token:
        return ""
    try:
        raw = base64.urlsafe_b64decode(token.encode())
        if raw[:1] != b"1":
            raise ValueError
        return raw[1:].decode()
    except (binascii.Error, ValueError):
        raise InvalidArgument.of("page_token", token, "empty, or a next_page_token of an earlier answer") from None


def page(items: Iterable[T], key: Callable[[T], str], page_size: int, page_token: str) -> tuple[list[T], str]:
    """Cuts one page out of all items; sorts them by key. Returns the page and the token of the next."""
    limit, after = page_limit(page_size), key_of(page_token)
    rest = sorted((i for i in items if not after or key(i) > after), key=key)
    if len(rest) <= limit:
        return rest, ""
    return rest[:limit], token_for(key(rest[limit - 1]))


def copy_run_key(run: CopyRun) -> str:
    """Orders copy runs by worker cluster, connector, task and creation: the same wherever they are listed."""
    created = run.create_time.ToNanoseconds()
    return f"{run.worker_cluster}\0{run.connector}\0{run.task:010d}\0{created:020d}\0{run.uid}"


def connector_key(cluster: str, name: str) -> str:
    """Orders connectors by worker cluster, then name: NUL sorts before every letter of a name."""
    return f"{cluster}\0{name}"


def key_parts(key: str) -> tuple[str, str]:
    """Returns worker cluster and name of a key."""
    cluster, _, name = key.partition("\0")
    return cluster, name
