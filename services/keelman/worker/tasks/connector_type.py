"""What kind of connector a configuration is of, as clients and those who watch are told."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.errors import ConnectError
from keelman.model.errors import KeelmanError
from keelman.worker.tasks.tickets import is_source

UNKNOWN = "unknown"


def connector_type(config: Mapping[str, str]) -> str:
    """source, sink or unknown. A search for the class: many connectors have the same."""
    try:
        return "source" if is_source(config) else "sink"
    except (ConnectError, KeelmanError):
        return UNKNOWN
