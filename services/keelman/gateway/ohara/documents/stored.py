"""Objects that the state service stores as documents: one kind, its settings, and the further fields of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from keelman.gateway.ohara.kinds import Kinds
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.stored import Stored, StoredDocument
from keelman.gateway.ohara.wire.keys import ObjectKey, checked_key
from keelman.gateway.ohara.wire.resource import Json, OharaResource
from keelman.gateway.ohara.wire.setting_def import Definitions, SettingDef
from keelman.gateway.ohara.wire.values import Settings, created, edited
from keelman.gateway.ohara.wire.wording import exists, not_found
from keelman.model.errors import AlreadyExists


class StoredKind(OharaResource):
    """A kind that is only stored and returned. Settings come back as they were sent, with their secrets."""

    KIND: ClassVar[str]
    DEFINITIONS: ClassVar[Definitions]

    def __init__(self, control: OharaControl, kinds: Kinds) -> None:
        self._control, self._kinds = control, kinds
        self._stored = Stored(control, self.KIND)

    async def list(self) -> Sequence[Json]:
        """Returns all objects of the kind."""
        return await self._completed([_answer(document) for document in await self._stored.list()])

    async def get(self, key: ObjectKey) -> Json:
        """Returns one object. Raises no_such."""
        return (await self._completed([_answer(await self._present(key))]))[0]

    async def create(self, settings: Settings) -> Json:
        """Creates an object. Raises OharaError if its key is taken."""
        checked = await self._checked(created(self._definitions(settings), settings))
        key = checked_key(checked["group"], checked["name"])
        try:
            return await self._put(key, checked, create_only=True)
        except AlreadyExists:
            raise exists(self.KIND, key) from None

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        """Changes or creates an object. Raises Conflict or AlreadyExists if another caller was faster."""
        if (document := await self._found(key)) is None:
            checked = await self._checked(created(self._definitions(settings), {**settings, **key.json}))
            return await self._put(key, checked, create_only=True)
        previous = dict(document.content)
        merged = edited(self._definitions(previous), previous, {**settings, **key.json})
        return await self._put(key, await self._checked({**merged, **key.json}), etag=document.etag)

    async def delete(self, key: ObjectKey) -> None:
        """Deletes an object."""
        if (document := await self._found(key)) is None:
            return
        await self._check_delete(key, document.content)
        await self._stored.delete(key)

    def _definitions(self, settings: Settings) -> Sequence[SettingDef]:
        """Returns the table of definitions that settings are checked against."""
        return [setting for setting in self.DEFINITIONS if not setting.internal]

    async def _checked(self, settings: Settings) -> Settings:
        """Returns the settings to store. Raises OharaError for illegal values that the table does not cover."""
        return settings

    async def _check_delete(self, key: ObjectKey, settings: Mapping[str, Any]) -> None:
        """Raises OharaError for an object that may not be deleted."""

    async def _completed(self, objects: Sequence[Json]) -> Sequence[Json]:
        """Returns the objects with the further fields of answers, beside settings and lastModified."""
        return objects

    async def _found(self, key: ObjectKey) -> StoredDocument | None:
        return await self._stored.get(key)

    async def _present(self, key: ObjectKey) -> StoredDocument:
        """Returns a document. Raises OharaError for an object that does not exist."""
        if (document := await self._found(key)) is None:
            raise not_found(self.KIND, key)
        return document

    async def _put(self, key: ObjectKey, settings: Settings, *, etag: str = "", create_only: bool = False) -> Json:
        stored = await self._stored.put(key, settings, etag=etag, new=create_only)
        return (await self._completed([_answer(stored)]))[0]


def _answer(document: StoredDocument) -> Json:
    return {**document.content, "lastModified": document.modified}
