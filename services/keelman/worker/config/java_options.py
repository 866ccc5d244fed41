"""Takes Java options from KAFKA_OPTS, as start scripts of Kafka Connect have them, where our properties are not set."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping

from keelman.kafka.security.oauth import ALLOWED_KEY, JAVA_ALLOWED_KEY

VARIABLE = "KAFKA_OPTS"


def java_option(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Returns the value of `-D<name>=`; empty when there is none."""
    try:
        words = shlex.split(environment.get(VARIABLE, ""))
    except ValueError:
        return ""
    option = f"-D{name}="
    return next((word.removeprefix(option) for word in words if word.startswith(option)), "")


def with_allowed_urls(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties, with the token endpoints that Java's clients may call where none are named."""
    urls = properties.get(ALLOWED_KEY, "") or java_option(JAVA_ALLOWED_KEY)
    return {**properties, ALLOWED_KEY: urls} if urls else dict(properties)
