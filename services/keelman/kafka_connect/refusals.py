"""Explains by its properties why a worker of Apache Kafka Connect did not start, if Java's message names none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import javaproperties

from keelman.model.errors import InvalidArgument
from keelman.workers.properties.listeners import server_tls

LISTENERS = (("listeners", False), ("admin.listeners", True))
REFERENCE = "${"


def refused_stores(properties_file: Path) -> InvalidArgument | None:
    """Returns the error in the keystore or truststore of its https listeners; None if no error is found.

    Call it only after Java failed to start with them, so that stores that Java accepts are never refused."""
    properties = javaproperties.loads(properties_file.read_text(encoding="utf-8"))
    if any(REFERENCE in value for key, value in properties.items() if ".ssl." in f".{key}"):
        return None  # only Connect can read these values
    return next(filter(None, (_refused(properties, key, admin=admin) for key, admin in LISTENERS)), None)


def _refused(properties: Mapping[str, str], key: str, *, admin: bool) -> InvalidArgument | None:
    if "https:" not in properties.get(key, "").lower():
        return None
    try:
        server_tls(properties, admin=admin)
    except InvalidArgument as error:
        return error
    return None
