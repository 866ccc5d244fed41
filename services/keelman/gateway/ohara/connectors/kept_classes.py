"""Keeps the worker clusters' class descriptions in the state service, so that every gateway, also after a restart, can
describe files with them."""

from __future__ import annotations

import time
from collections.abc import Callable

import orjson

from keelman.gateway.ohara.connectors.class_settings import Json
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.stored import Stored
from keelman.gateway.ohara.wire.keys import ObjectKey
from keelman.model.errors import KeelmanError
from keelman.runtime.logs.logging import get_logger

log = get_logger()
KIND = "class"
TEXT = "definitions"
NO_VERSION = "none"
AGAIN_SECONDS = 30.0
"""The time between two reads of the descriptions that other gateways have stored."""


class KeptClasses:
    """Connector classes with their settings, by name and version."""

    def __init__(self, control: OharaControl, clock: Callable[[], float] = time.monotonic) -> None:
        self._stored = Stored(control, KIND)
        self._clock = clock
        self._known: dict[str, dict[str, Json]] = {}
        """Descriptions by name and version."""
        self._looked: float | None = None

    async def look(self) -> None:
        """Reads the stored descriptions, unless that was done in the last AGAIN_SECONDS. Raises KeelmanError if the
        state service does not answer."""
        if self._looked is not None and self._clock() < self._looked + AGAIN_SECONDS:
            return
        self._looked = self._clock()
        for entry in await self._stored.list():
            versions = self._known.setdefault(entry.key.name, {})
            if entry.key.group not in versions:
                versions[entry.key.group] = orjson.loads(entry.content[TEXT])

    def find(self, name: str, version: str) -> Json | None:
        """Returns the description of a class in this version, else in any version; None if no worker cluster reported
        it."""
        versions = self._known.get(name, {})
        return versions.get(version or NO_VERSION) or next(iter(versions.values()), None)

    async def keep(self, name: str, version: str, info: Json) -> None:
        """Stores the description that a worker has just reported. A failure is only logged: the request does not need
        it."""
        versions, key = self._known.setdefault(name, {}), ObjectKey(version or NO_VERSION, name)
        if versions.get(key.group) == info:
            return
        versions[key.group] = info
        try:
            await self._stored.put(key, {TEXT: orjson.dumps(info).decode()})
        except KeelmanError as error:
            log.warning("class_not_kept", name=name, version=version, error=error.message)
