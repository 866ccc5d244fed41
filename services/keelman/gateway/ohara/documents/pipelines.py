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
from keelman.gateway.ohara.wire.call import OharaCall
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

    async def act(self, key: ObjectKey, verb: str, call: OharaCall) -> None:
        """Refreshes a pipeline: removes the endpoints whose objects do not exist."""
        if verb != "refresh":
            raise unsupported(call.target)
        document = await self._present(key)
        settings = dict(document.content)
        endpoints = settings.get(ENDPOINTS, [])
        present = await self._look_up(endpoints)
        there = [endpoint for endpoint in endpoints if _named(endpoint) in present]
        if there != endpoints:
            await self._put(key, {**settings, ENDPOINTS: there}, etag=document.etag)

    async def _checked(self, settings: Settings) -> Settings:
        remaining = {k: v for k, v in settings.items() if k not in (OBJECTS, JAR_KEYS)}
        return {**remaining, ENDPOINTS: _distinct(map(_endpoint, settings[ENDPOINTS]))}

    async def _completed(self, objects: Sequence[Json]) -> Sequence[Json]:
        present = await self._look_up(endpoint for pipeline in objects for endpoint in pipeline[ENDPOINTS])
        clusters = {key_of(cluster[WORKER_KEY]) for cluster in present.values() if WORKER_KEY in cluster}
        workers = await self._objects("worker", clusters)
        return [
            {
                **pipeline,
                OBJECTS: [
                    _abstract(*named, present[named]) for named in map(_named, pipeline[ENDPOINTS]) if named in present
                ],
                JAR_KEYS: _jar_keys([present[n] for n in map(_named, pipeline[ENDPOINTS]) if n in present], workers),
            }
            for pipeline in objects
        ]

    async def _look_up(self, endpoints: Iterable[Mapping[str, str]]) -> Found:
        """Returns the existing objects that endpoints name."""
        named_endpoints = set(map(_named, endpoints))
        objects: Found = {}
        for kind in {kind for kind, _ in named_endpoints}:
            if kind == self.KIND:  # without its own objects: pipelines may name each other
                keys = [key for other_kind, key in named_endpoints if other_kind == kind]
                stored = {key: await self._found(key) for key in keys}
                objects |= {
                    (kind, key): {**entry.content, "lastModified": entry.modified}
                    for key, entry in stored.items()
                    if entry is not None
                }
            elif kind in PLURALS:
                keys = [key for other_kind, key in named_endpoints if other_kind == kind]
                objects |= {(kind, key): entry for key, entry in (await self._objects(kind, keys)).items()}
        return {named: entry for named, entry in objects.items() if named in named_endpoints}

    async def _objects(self, kind: str, keys: Collection[ObjectKey]) -> dict[ObjectKey, Json]:
        """Returns the existing objects with these keys: reads few of them one by one, picks many from a list of all."""
        if len(keys) > FEW:
            return {_key(kind, entry): entry for entry in await self._kinds.all(kind)}
        key_list = list(keys)
        objects = await asyncio.gather(*(self._kinds.find(kind, key) for key in key_list))
        return {key: entry for key, entry in zip(key_list, objects, strict=True) if entry is not None}


def _endpoint(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise bad_value(f'the {ENDPOINTS} must be JsObject type, but actual type is "{type_name(value)}"')
    endpoint = {"group": DEFAULT_GROUP, **value}
    for field in ("group", "name", "kind"):
        if not isinstance(endpoint.get(field), str):
            raise bad_value(f"{ENDPOINTS}: each has the strings name and kind, and may have group")
    return {field: endpoint[field] for field in ("group", "name", "kind")}


def _distinct(endpoints: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    return list({_named(endpoint): endpoint for endpoint in endpoints}.values())


def _named(endpoint: Mapping[str, str]) -> tuple[str, ObjectKey]:
    return endpoint["kind"], ObjectKey(endpoint["group"], endpoint["name"])


def _key(kind: str, document: Json) -> ObjectKey:
    return (
        ObjectKey(DEFAULT_GROUP, document["hostname"])
        if kind == "node"
        else ObjectKey(document["group"], document["name"])
    )


def _abstract(kind: str, key: ObjectKey, document: Json) -> Json:
    """Returns a pipeline's answer about an object; the kind of a connector is source or sink."""
    answer = {
        **key.json,
        "kind": document.get(KIND, UNKNOWN) if kind == "connector" else kind,
        "nodeMetrics": document.get("nodeMetrics", {}),
        "lastModified": document["lastModified"],
        "tags": document.get("tags", {}),
    }
    if kind in CLASSES and CLASSES[kind] in document:
        answer["className"] = document[CLASSES[kind]]
    return answer | {field: document[field] for field in ("state", "error") if field in document}


def _jar_keys(objects: Iterable[Json], workers: Mapping[ObjectKey, Json]) -> list[Json]:
    """Returns the files that the objects use; for connectors the files of their worker clusters."""
    keys: dict[ObjectKey, None] = {}
    for document in objects:
        if WORKER_KEY in document and (worker := workers.get(key_of(document[WORKER_KEY]))) is not None:
            keys |= {key_of(each): None for field in ("sharedJarKeys", "pluginKeys") for each in worker.get(field, [])}
        if isinstance(jar := document.get(stream.JAR_KEY), dict):
            keys[key_of(jar)] = None
    return [key.json for key in keys]
