"""Reads what the status of a connector or task says beyond Kafka Connect's own fields: its field `keelman`."""

from __future__ import annotations

from collections.abc import Mapping

MORE = "keelman"
"""The field's name, in the status topic and in REST's answers."""
WAITS_FOR = "waits_for"


def failures(more: Mapping[str, object]) -> int:
    """How many attempts have failed in a row, as far as the status says."""
    own, restart = more.get("failures"), more.get("restart")
    found = (
        own.get("count") if isinstance(own, dict) else 0,
        restart.get("attempt") if isinstance(restart, dict) else 0,
    )
    return max((number for number in found if isinstance(number, int)), default=0)


def failure_reason(more: Mapping[str, object]) -> str:
    """Why the last of them failed; empty where the status does not say."""
    found = more.get("failures") or more.get("restart")
    return str(found.get("reason") or "") if isinstance(found, dict) else ""


def is_failing(more: Mapping[str, object]) -> bool:
    """Whether more than one attempt in a row has failed: a single failure is no problem yet."""
    return failures(more) > 1


def waits_for(more: Mapping[str, object]) -> str:
    """What a task waits for that runs and can copy nothing; empty otherwise."""
    return str(more.get(WAITS_FOR) or "")
