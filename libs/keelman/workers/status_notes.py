"""Reads the fields of a connector's or task's status beyond Kafka Connect's own: its field `keelman`."""

from __future__ import annotations

from collections.abc import Mapping

STATUS_FIELD = "keelman"
"""The field's name, in the status topic and in REST's answers."""
WAITS_FOR = "waits_for"


def failures(more: Mapping[str, object]) -> tuple[int, str]:
    """Returns how many attempts have failed since anything was committed, and why the last one did; (0, "") below two:
    a single failure is no problem yet."""
    times = more.get("failures")
    count = times.get("count") if isinstance(times, dict) else 0
    if not isinstance(times, dict) or not isinstance(count, int) or count < 2:
        return 0, ""
    return count, str(times.get("reason") or "")


def waits_for(more: Mapping[str, object]) -> str:
    """Returns the reason why a running task cannot copy anything; empty otherwise."""
    return str(more.get(WAITS_FOR) or "")
