"""`/v0/volumes`: folders that brokers and zookeepers may name. The agent creates a broker's folder when the broker
starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.gateway.ohara.definitions.volume import VOLUME
from keelman.gateway.ohara.documents.stored import StoredKind
from keelman.gateway.ohara.wire.call import OharaCall
from keelman.gateway.ohara.wire.errors import illegal_argument, unsupported
from keelman.gateway.ohara.wire.keys import ObjectKey, key_of
from keelman.gateway.ohara.wire.wording import must_be_stopped

USERS = {"zookeeper": "dataDir", "broker": "log.dirs"}
"""Kinds that name volumes, and the setting with the names."""
STATE, RUNNING = "state", "RUNNING"


class Volumes(StoredKind):
    """Volumes: stored, started and stopped by name."""

    KIND = "volume"
    DEFINITIONS = VOLUME

    async def act(self, key: ObjectKey, verb: str, call: OharaCall) -> None:
        """Starts or stops a volume. Raises OharaError for the stop of a volume that a running cluster uses."""
        if verb not in ("start", "stop"):
            raise unsupported(call.target)
        document = await self._present(key)
        settings = dict(document.content)
        runs = settings.get(STATE) == RUNNING
        if verb == "start" and not runs:
            await self._put(key, {**settings, STATE: RUNNING}, etag=document.etag)
        elif verb == "stop" and runs:
            await self._check_users(key, running=True)
            await self._put(key, {k: v for k, v in settings.items() if k != STATE}, etag=document.etag)

    async def _check_delete(self, key: ObjectKey, settings: Mapping[str, Any]) -> None:
        if settings.get(STATE) == RUNNING:
            raise must_be_stopped(self.KIND, key)
        await self._check_users(key, running=False)

    async def _check_users(self, key: ObjectKey, *, running: bool) -> None:
        for kind, field in USERS.items():
            for document in await self._kinds.all(kind):
                named = document.get(field, [])
                keys = [key_of(each, field) for each in (named if isinstance(named, list) else [named])]
                if key in keys and (STATE in document or not running):
                    raise illegal_argument(f"volume: {key} is used by {kind}: {key_of(document)}")
