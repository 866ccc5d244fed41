"""Finds out whether a worker requires passwords: by Connect's REST extension for basic authentication.

The file of users is on the worker's host, and only the worker reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keelman.model.errors import InvalidArgument

EXTENSIONS = "rest.extension.classes"
EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
NAMES = (EXTENSION, EXTENSION.rpartition(".")[2], "BasicAuthSecurity")
ENTRY = "KafkaConnect"
FILE = "keelman.jaas.file"


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """The users that a worker accepts, with their passwords."""

    users: Mapping[str, str] = field(repr=False)


def asks_for_passwords(raw: Mapping[str, str]) -> bool:
    """Returns whether `rest.extension.classes` names the extension. Raises InvalidArgument for any other class."""
    classes = [part.strip() for part in raw.get(EXTENSIONS, "").split(",") if part.strip()]
    for class_name in classes:
        if class_name not in NAMES:
            raise InvalidArgument.of(EXTENSIONS, class_name, f"{EXTENSION}; other Java classes cannot be loaded")
    return bool(classes)
