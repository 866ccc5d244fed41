"""Decides which client properties a connector may set: Connect's policies, under their Java names.

`All` is the default; `Allowlist` reads `connector.client.config.override.allowlist` of the worker.
"""

from __future__ import annotations

from collections.abc import Mapping

POLICY_KEY = "connector.client.config.override.policy"
ALLOWED_KEY = "connector.client.config.override.allowlist"
POLICIES = ("All", "Allowlist", "Principal", "None")
_SUFFIX = "ConnectorClientConfigOverridePolicy"
_PACKAGE = "org.apache.kafka.connect.connector.policy."
_PRINCIPAL = ("sasl.jaas.config", "sasl.mechanism", "security.protocol")


def policy(worker: Mapping[str, str]) -> str:
    """Returns the worker's policy, one of POLICIES; or the text of its properties if it is another."""
    named = worker.get(POLICY_KEY, "").strip() or "All"
    short = named.removeprefix(_PACKAGE).removesuffix(_SUFFIX)
    return short if short in POLICIES else named


def refused(worker: Mapping[str, str], key: str) -> str:
    """Returns Connect's message when the worker's policy does not allow this key of a client; empty when it does."""
    name = policy(worker)
    allowed = {
        "All": True,
        "Allowlist": key in {part.strip() for part in worker.get(ALLOWED_KEY, "").split(",")},
        "Principal": key in _PRINCIPAL,
    }.get(name, False)
    return (
        ""
        if allowed
        else f"The '{name}' policy does not allow '{key}' to be overridden in the connector configuration."
    )
