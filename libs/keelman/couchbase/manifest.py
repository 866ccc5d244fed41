"""A bucket's collections: their names by id, from a manifest and the system events behind it. Pure."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from keelman.couchbase.errors import CouchbaseError, ProtocolError

DEFAULT = "_default"
COLLECTION_CREATED, COLLECTION_DROPPED, SCOPE_CREATED, SCOPE_DROPPED = 0, 1, 3, 4


class Collection(NamedTuple):
    """A collection by its names."""

    scope: str
    name: str

    def __str__(self) -> str:
        return f"{self.scope}.{self.name}"


DEFAULT_COLLECTION = Collection(DEFAULT, DEFAULT)


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of a bucket that a client reads: all, one scope, or some collections."""

    scope: str = ""
    collections: Sequence[Collection] = ()

    @property
    def is_all(self) -> bool:
        """Whether the whole bucket is selected."""
        return not self.scope and not self.collections

    def is_gone(self, manifest: CollectionManifest) -> bool:
        """Returns whether the manifest has nothing of the selected part."""
        if self.scope:
            return self.scope not in manifest.scopes.values()
        return bool(self.collections) and not set(self.collections) & set(manifest.collections.values())

    def takes(self, collection: Collection) -> bool:
        """Returns whether the collection is selected."""
        if self.scope:
            return collection.scope == self.scope
        return not self.collections or collection in self.collections

    def missing(self, manifest: CollectionManifest) -> list[Collection]:
        """Returns the named collections that the manifest does not have."""
        present = set(manifest.collections.values())
        return [collection for collection in self.collections if collection not in present]

    def value(self, manifest: CollectionManifest, uid: int, *, widened: bool | None = None) -> Mapping[str, object]:
        """Returns the JSON of a stream request. Raises CouchbaseError for a name that the manifest does not have.

        `widened` is for a client that had all of the collections once. If some are gone, True requests everything, so
        that a collection that is created again is read from its first change on; False requests only the rest.
        """
        value: dict[str, object] = {"uid": f"{uid:x}"}
        if self.scope:
            ids = [at for at, name in manifest.scopes.items() if name == self.scope]
            if not ids:
                raise CouchbaseError(
                    f"the bucket has no scope {self.scope!r}: it has {_listed(manifest.scopes.values())}"
                )
            value["scope"] = f"{ids[0]:x}"
        elif self.collections:
            missing = self.missing(manifest)
            if missing and (widened is None or len(missing) == len(self.collections)):
                have = _listed(map(str, manifest.collections.values()))
                raise CouchbaseError(f"the bucket has no collection {str(missing[0])!r}: it has {have}")
            if not (missing and widened):
                value["collections"] = [f"{identifier:x}" for identifier in self.ids(manifest)]
        return value

    def ids(self, manifest: CollectionManifest) -> list[int]:
        """Returns the ids of the named collections that the manifest has."""
        identifiers = {collection: at for at, collection in manifest.collections.items()}
        return [identifiers[collection] for collection in self.collections if collection in identifiers]


@dataclass(slots=True)
class CollectionManifest:
    """A bucket's scopes and collections by id. `uid` rises with each change, which may cover several of them."""

    uid: int = 0
    scopes: dict[int, str] = field(default_factory=lambda: {0: DEFAULT})
    collections: dict[int, Collection] = field(default_factory=lambda: {0: DEFAULT_COLLECTION})
    selection: Selection = field(default_factory=Selection)
    selected: dict[int, Collection] = field(init=False)
    """The collections that are read."""

    def __post_init__(self) -> None:
        self._select()

    def learn(self, newer: CollectionManifest) -> None:
        """Takes over the content of another manifest if that is newer."""
        if newer.uid > self.uid:
            self.uid, self.scopes, self.collections = newer.uid, newer.scopes, newer.collections
            self._select()

    def apply(self, event: int, key: bytes, value: bytes) -> int:
        """Applies a system event, unless it is older than the manifest. Returns the uid that the event names.

        Raises ProtocolError for a value that is too short.
        """
        try:
            (uid,) = struct.unpack_from(">Q", value)
            if uid < self.uid:  # of several simultaneous changes only the last one has the new uid
                return int(uid)
            name = key.decode()
            if event == COLLECTION_CREATED:
                scope, collection = struct.unpack_from(">II", value, 8)
                self.collections[collection] = Collection(self.scopes.get(scope, f"0x{scope:x}"), name)
            elif event == COLLECTION_DROPPED:
                (_, collection) = struct.unpack_from(">II", value, 8)
                self.collections.pop(collection, None)
            elif event == SCOPE_CREATED:
                (scope,) = struct.unpack_from(">I", value, 8)
                self.scopes[scope] = name
            elif event == SCOPE_DROPPED:
                (scope,) = struct.unpack_from(">I", value, 8)
                dropped = self.scopes.pop(scope, None)
                self.collections = {
                    at: collection for at, collection in self.collections.items() if collection.scope != dropped
                }
        except (struct.error, UnicodeDecodeError):
            raise ProtocolError(
                f"system event {event} has a value of {len(value)} bytes that does not fit it"
            ) from None
        self.uid = max(self.uid, uid)
        self._select()
        return int(uid)

    def _select(self) -> None:
        if self.selection.is_all:
            self.selected = self.collections
        else:
            self.selected = {
                at: collection for at, collection in self.collections.items() if self.selection.takes(collection)
            }


def parse_manifest(text: bytes) -> CollectionManifest:
    """Returns the manifest of a bucket. Raises ProtocolError for text that is not a manifest."""
    try:
        tree = json.loads(text)
        manifest = CollectionManifest(int(tree["uid"], 16), {}, {})
        for scope in tree["scopes"]:
            manifest.scopes[int(scope["uid"], 16)] = scope["name"]
            for collection in scope["collections"]:
                manifest.collections[int(collection["uid"], 16)] = Collection(scope["name"], collection["name"])
    except (ValueError, KeyError, TypeError):
        raise ProtocolError("the server gave an invalid collections manifest") from None
    return manifest


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def dropped_collection(value: bytes) -> int:
    """Returns the id of a dropped collection from the value of its event; -1 if the value is too short."""
    return int(struct.unpack_from(">I", value, 12)[0]) if len(value) >= 16 else -1


def split_key(key: bytes) -> tuple[int, bytes]:
    """Splits a key into the collection's id (unsigned LEB128, 5 bytes at most) and the document's key.

    Raises ProtocolError for an id that has no end.
    """
    first = key[0] if key else 0x80
    if first < 0x80:
        return first, key[1:]
    number = shift = 0
    for index, byte in enumerate(key[:5]):
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, key[index + 1 :]
        shift += 7
    raise ProtocolError(f"a document's key has no collection id: {key[:8].hex(' ')}")
