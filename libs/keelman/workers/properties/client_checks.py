"""Checks the client properties among a worker's before anything is connected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from keelman.connect.config.override_policies import POLICIES, POLICY_KEY, policy
from keelman.kafka.properties.connector_clients import merged
from keelman.kafka.properties.keys import ClientKind
from keelman.kafka.properties.settings import problems
from keelman.kafka.security.oauth import ALLOWED_KEY, URL_KEY
from keelman.workers.properties.reader import PropertyReader

_IDENTITY = ("security.", "sasl.")


def check_clients(reader: PropertyReader) -> None:
    """Notes unusable client properties of the worker itself and of its connectors, and an invalid policy."""
    raw = reader.raw
    if policy(raw) not in POLICIES:
        reader.refuse(POLICY_KEY, raw[POLICY_KEY], "one of " + ", ".join(POLICIES))
    for key, message in _problems(reader, raw, "admin", ""):
        reader.note(key, message)
    for client in get_args(ClientKind):
        for key, message in _problems(reader, merged(raw, {}, client), client, f"{client}."):
            own = f"{client}.{key}"
            if own in raw:
                reader.note(own, f"{client}.{message}" if message.startswith(f"{key}:") else message)
            else:
                reader.note(key, message)


def _problems(
    reader: PropertyReader, own: Mapping[str, str], client: ClientKind, prefix: str
) -> Iterator[tuple[str, str]]:
    """Returns the problems of one client's properties, without those that unknown values may solve."""
    identity = reader.knows(under=(*_IDENTITY, *(prefix + key for key in _IDENTITY if prefix)))
    for key, message in problems(own, client, reader.raw.get(ALLOWED_KEY, "")):
        if (identity or not key.startswith(_IDENTITY)) and (key != URL_KEY or reader.knows(ALLOWED_KEY)):
            yield key, message
