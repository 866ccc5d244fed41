"""The client properties in a worker's file, checked before anything is connected."""

from __future__ import annotations

from typing import get_args

from keelman.connect.config.override_policies import POLICIES, POLICY_KEY, policy
from keelman.kafka.properties.connector_clients import merged
from keelman.kafka.properties.keys import ClientKind
from keelman.kafka.properties.settings import problems
from keelman.kafka.security.oauth import ALLOWED_KEY, allow_urls
from keelman.worker.config.reader import PropertyReader


def check_clients(reader: PropertyReader) -> None:
    """Notes what cannot be used of the worker's own and its connectors' clients, and a policy that is none.

    From here on this process may ask the URLs of `keelman.oauthbearer.allowed.urls` for tokens.
    """
    raw = reader.raw
    allowed = raw.get(ALLOWED_KEY, "")
    allow_urls(allowed)
    if policy(raw) not in POLICIES:
        reader.refuse(POLICY_KEY, raw[POLICY_KEY], "one of " + ", ".join(POLICIES))
    for key, message in problems(raw, "admin", allowed):
        reader.note(key, message)
    for client in get_args(ClientKind):
        for key, message in problems(merged(raw, {}, client), client, allowed):
            own = f"{client}.{key}"
            if own in raw:
                reader.note(own, f"{client}.{message}" if message.startswith(f"{key}:") else message)
            else:
                reader.note(key, message)
