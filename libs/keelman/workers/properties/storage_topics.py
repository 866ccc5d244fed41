"""The names of the topics in which a worker cluster stores configurations, offsets and statuses. Pure."""

from __future__ import annotations

from collections.abc import Mapping

USUAL = {"config.storage.topic": "configs", "offset.storage.topic": "offsets", "status.storage.topic": "status"}
"""The properties that name them, with the last word of the usual name."""


def usual_prefix(cluster: str) -> str:
    """Returns the beginning of the names that a worker cluster's topics have unless its properties name others."""
    return f"{cluster}.connect-"


def storage_topics_of(cluster: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the three topics of a worker cluster, by property."""
    return {key: properties.get(key) or f"{usual_prefix(cluster)}{word}" for key, word in USUAL.items()}
