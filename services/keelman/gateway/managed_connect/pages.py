"""Creates and reads page tokens: opaque, and valid only for the list that returned them. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

from keelman.gateway.managed_connect.call import ManagedCall
from keelman.gateway.managed_connect.errors import bad_member

T = TypeVar("T")
CHECK_BYTES = 8


def token_of(call: ManagedCall, prefix: str, key: str) -> str:
    """Returns the token of the page after `key`; empty for no further page. `prefix`: the filter of the list."""
    return base64.urlsafe_b64encode(_check(call, prefix, key) + key.encode()).decode() if key else ""


def key_of(call: ManagedCall, prefix: str) -> str:
    """Returns the key in a call's token; empty for the first page. Raises WireError for a token of another list."""
    token = call.parameter("nextToken")
    if not token:
        return ""
    try:
        raw = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
        check, key = raw[:CHECK_BYTES], raw[CHECK_BYTES:].decode()
    except (binascii.Error, ValueError):
        check, key = b"", ""
    if not key or check != _check(call, prefix, key):
        raise bad_member("nextToken", "The token is not one of this list.")
    return key


def page(
    call: ManagedCall, prefix: str, items: Iterable[T], key: Callable[[T], str], *, newest_first: bool = False
) -> tuple[list[T], str]:
    """Returns a page of all items in the order of their keys, and the token of the next page. Raises WireError."""
    after, most = key_of(call, prefix), call.max_results
    ordered = sorted(items, key=key, reverse=newest_first)
    rest = [item for item in ordered if not after or (key(item) < after if newest_first else key(item) > after)]
    return rest[:most], token_of(call, prefix, key(rest[most - 1])) if len(rest) > most else ""


def _check(call: ManagedCall, prefix: str, key: str) -> bytes:
    text = "\0".join((call.caller.account, call.sent.path, prefix, key))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()[:CHECK_BYTES]
