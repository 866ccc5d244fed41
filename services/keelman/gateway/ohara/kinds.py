"""The kinds of objects, for lookups between them: whether an object exists, and which objects use it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keelman.gateway.ohara.wire.errors import NO_SUCH, OharaError
from keelman.gateway.ohara.wire.keys import DEFAULT_GROUP, ObjectKey, key_of
from keelman.gateway.ohara.wire.resource import Json, OharaResource
from keelman.gateway.ohara.wire.setting_def import SettingDef, Type
from keelman.gateway.ohara.wire.wording import not_found, not_stored

PLURALS = {
    "file": "files",
    "node": "nodes",
    "zookeeper": "zookeepers",
    "broker": "brokers",
    "stream": "streams",
    "shabondi": "shabondis",
    "worker": "workers",
    "object": "objects",
    "pipeline": "pipelines",
    "topic": "topics",
    "volume": "volumes",
    "connector": "connectors",
}
"""The path of each kind, in the order in which Ohara checks whether objects exist."""
_REFERENCES = (Type.OBJECT_KEY, Type.OBJECT_KEYS)


class Kinds:
    """Looks objects up by their kind. The resources may be filled in after creation, since kinds name each other."""

    def __init__(self, resources: Mapping[str, OharaResource]) -> None:
        self._resources = resources

    async def all(self, kind: str) -> Sequence[Json]:
        """Returns all objects of a kind; none if the kind is not served."""
        resource = self._resources.get(PLURALS.get(kind, ""))
        return [] if resource is None else await resource.list()

    async def find(self, kind: str, key: ObjectKey) -> Json | None:
        """Returns one object; None if it does not exist."""
        resource = self._resources.get(PLURALS.get(kind, ""))
        if resource is None:
            return None
        try:
            return await resource.get(key)
        except OharaError as error:
            if error.code != NO_SUCH:
                raise
            return None

    async def check(self, definitions: Iterable[SettingDef], settings: Mapping[str, Any]) -> None:
        """Raises OharaError for the first kind of which the settings name missing objects."""
        named: dict[str, dict[ObjectKey, None]] = {}
        for definition in definitions:
            if definition.reference != "NONE" and definition.key in settings and not definition.internal:
                named.setdefault(definition.reference.lower(), {}).update(
                    dict.fromkeys(_named(definition, settings[definition.key]))
                )
        for kind in PLURALS:
            missing = [key for key in named.get(kind, ()) if await self.find(kind, key) is None]
            if missing and kind == "file":
                raise not_found(kind, missing[0])
            if missing:
                raise not_stored(kind, missing)


def _named(setting: SettingDef, value: Any) -> list[ObjectKey]:
    """Returns the keys that a setting names."""
    if setting.type in _REFERENCES:
        return [key_of(reference, setting.key) for reference in (value if isinstance(value, list) else [value])]
    if setting.reference == "NODE":
        return [ObjectKey(DEFAULT_GROUP, item) for item in value if isinstance(item, str)]
    return []
