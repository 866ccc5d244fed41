"""Logs a worker's properties that nothing reads."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.references import references
from keelman.runtime.logs.logging import get_logger
from keelman.workers.properties.known_properties import ignored, near, unknown

log = get_logger()


def log_notes(properties: Mapping[str, str], *, standalone: bool) -> None:
    """Logs one line for ignored properties, one for unknown ones, and one for references without a value."""
    if reasons := ignored(properties, standalone=standalone):
        log.warning("worker_properties_ignored", **reasons)
    if keys := unknown(properties):
        log.warning(
            "worker_properties_unknown",
            keys=", ".join(map(near, keys)),
            note="they are accepted, and nothing reads them",
        )
    if keys := sorted(key for key, text in properties.items() if references(text)):
        log.warning(
            "worker_properties_unresolved",
            keys=", ".join(keys),
            note="config.providers have no value for the reference: it stays as it is, as in Connect",
        )
