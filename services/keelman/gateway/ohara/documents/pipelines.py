"""`/v0/pipelines`: graphs of objects, returned with the state of each object."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from keelman.gateway.ohara.definitions import shabondi, stream
from keelman.gateway.ohara.definitions.config import CLASS, WORKER_KEY
from keelman.gateway.ohara.definitions.connector import KIND, UNKNOWN
from keelman.gateway.ohara.definitions.pipeline import ENDPOINTS, PIPELINE
from keelman.gateway.ohara.documents.stored import StoredKind
from keelman.gateway.ohara.kinds import PLURALS
from keelman.gateway.ohara.wire.call import Call
from keelman.gateway.ohara.wire.errors import bad_value, unsupported
from keelman.gateway.ohara.wire.json_types import type_name
from keelman.gateway.ohara.wire.keys import DEFAULT_GROUP, ObjectKey, key_of
from keelman.gateway.ohara.wire.resource import Json
from keelman.gateway.ohara.wire.values import Settings

OBJECTS, JAR_KEYS = "objects", "jarKeys"
CLASSES = {"connector": CLASS, "stream": stream.CLASS, "shabondi": shabondi.CLASS}
"""For each kind, the setting with an object's class."""
FEW = 8
"""Up to this number, objects of a kind are read one by one."""
Found = dict[tuple[str, ObjectKey], Json]


class Pipelines(StoredKind):
    """Pipelines. Endpoints may dangle; their objects are looked up for each answer."""

    KIND = "pipeline"
    DEFINITIONS = PIPELINE

    async def act(self, key: ObjectKey, verb: str, call: Call) -> None:
        """Refreshes a pipeline: removes the endpoints whose objects do not exist."""
        if verb != "refresh":
            raise unsupported(call.target)
        document = await self._present(key)
        settings = dict(document.content)
        endpoints = settings.get(ENDPOINTS, [])
        found = await self._look_up(endpoints)
        there = [one for one in endpoints if _named(one) in found]
        if there != endpoints:
            await self._put(key, {**settings, ENDPOINTS: there}, etag=document.etag)

    async def _checked(self, settings: Settings) -> Settings:
        kept = {k: v for k, v in settings.items() if k not in (OBJECTS, JAR_KEYS)}
        return {**kept, ENDPOINTS: _distinct(map(_endpoint, settings[ENDPOINTS]))}

    async def _completed(self, objects: Sequence[Json]) -> Sequence[Json]:
        found = await self._look_up(one for pipeline in objects for one in pipeline[ENDPOINTS])
        clusters = {key_of(one[WORKER_KEY]) for one in found.values() if WORKER_KEY in one}
        workers = await self._objects("worker", clusters)
        return [
            {
                **one,
                OBJECTS: [_abstract(*named, found[named]) for named in map(_named, one[ENDPOINTS]) if named in found],
                JAR_KEYS: _jar_keys([found[n] for n in map(_named, one[ENDPOINTS]) if n in found], workers),
            }
            for one in objects
        ]

    async def _look_up(self, endpoints: Iterable[Mapping[str, str]]) -> Found:
        """Returns the existing objects that endpoints name."""
        wanted = set(map(_named, endpoints))
        found: Found = {}
        for kind in {kind for kind, _ in wanted}:
            if kind == self.KIND:  # without its own objects: pipelines may name each other
                keys = [key for one, key in wanted if one == kind]
                stored = {key: await self._found(key) for key in keys}
                found |= {
                    (kind, key): {**one.content, "lastModified": one.modified}
                    for key, one in stored.items()
                    if one is not None
                }
            elif kind in PLURALS:
                keys = [key for one, key in wanted if one == kind]
                found |= {(kind, key): one for key, one in (await self._objects(kind, keys)).items()}
        return {named: one for named, one in found.items() if named in wanted}

    async def _objects(self, kind: str, keys: Collection[ObjectKey]) -> dict[ObjectKey, Json]:
        """Returns the existing objects with these keys: reads few of them one by one, picks many from a list of all."""
        if len(keys) > FEW:
            return {_key(kind, one): one for one in await self._kinds.all(kind)}
        wanted = list(keys)
        found = await asyncio.gather(*(self._kinds.find(kind, key) for key in wanted))
        return {key: one for key, one in zip(wanted, found, strict=True) if one is not None}


def _endpoint(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise bad_value(f'the {ENDPOINTS} must be JsObject type, but actual type is "{type_name(value)}"')
    given = {"group": DEFAULT_GROUP, **value}
    for field in ("group", "name", "kind"):
        if not isinstance(given.get(field), str):
            raise bad_value(f"{ENDPOINTS}: each has the strings name and kind, and may have group")
    return {field: given[field] for field in ("group", "name", "kind")}


def _distinct(endpoints: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    return list({_named(one): one for one in endpoints}.values())


def _named(endpoint: Mapping[str, str]) -> tuple[str, ObjectKey]:
    return endpoint["kind"], ObjectKey(endpoint["group"], endpoint["name"])


def _key(kind: str, one: Json) -> ObjectKey:
    return ObjectKey(DEFAULT_GROUP, one["hostname"]) if kind == "node" else ObjectKey(one["group"], one["name"])


def _abstract(kind: str, key: ObjectKey, one: Json) -> Json:
    """Returns a pipeline's answer about an object; the kind of a connector is source or sink."""
    answer = {
        **key.json,
        "kind": one.get(KIND, UNKNOWN) if kind == "connector" else kind,
        "nodeMetrics": one.get("nodeMetrics", {}),
        "lastModified": one["lastModified"],
        "tags": one.get("tags", {}),
    }
    if kind in CLASSES and CLASSES[kind] in one:
        answer["className"] = one[CLASSES[kind]]
    return answer | {field: one[field] for field in ("state", "error") if field in one}


def _jar_keys(objects: Iterable[Json], workers: Mapping[ObjectKey, Json]) -> list[Json]:
    """Returns the files that the objects use; for connectors the files of their worker clusters."""
    found: dict[ObjectKey, None] = {}
    for one in objects:
        if WORKER_KEY in one and (worker := workers.get(key_of(one[WORKER_KEY]))) is not None:
            found |= {key_of(each): None for field in ("sharedJarKeys", "pluginKeys") for each in worker.get(field, [])}
        if isinstance(jar := one.get(stream.JAR_KEY), dict):
            found[key_of(jar)] = None
    return [key.json for key in found]
