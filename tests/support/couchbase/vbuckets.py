"""The contents of a bucket of the test server: each vbucket's history with its branches, and the collections. Pure.

Written from the rules in the sources and documents of Couchbase's server, not from keelman's client.
"""

from __future__ import annotations

import itertools
from collections.abc import Container
from dataclasses import dataclass, field, replace

MUTATION, DELETION, EXPIRATION, SYSTEM, PREPARED, ABORTED = 0x57, 0x58, 0x59, 0x5F, 0x60, 0x63
UNSEEN = frozenset((PREPARED, ABORTED))
"""Parts of synchronous writes, for clients that request them; a commit is a mutation for all others."""
CREATED, DROPPED, SCOPE_CREATED, SCOPE_DROPPED = 0, 1, 3, 4
"""System events."""
_CAS = itertools.count(1_700_000_000_000_001)
_UUIDS = itertools.count(0xFA11_0000_0000_0001)


@dataclass(frozen=True, slots=True)
class Item:
    """One change. `key` has no collection id before it.

    A system event has `event`, `version` and `value` too, the collection that it concerns, -1 for a scope, and the
    scope.
    """

    seqno: int
    kind: int
    key: bytes
    value: bytes = b""
    datatype: int = 0
    collection: int = 0
    revision: int = 1
    cas: int = 0
    flags: int = 0x0200_0000
    expiry: int = 0
    event: int = 0
    version: int = 0
    scope: int = 0


@dataclass(slots=True)
class History:
    """One vbucket.

    `log` has (vbuuid, first seqno), the newest first; a replica has the same log unless it has its own.
    """

    number: int
    node: int
    replica: int = -1
    items: list[Item] = field(default_factory=list)
    log: list[tuple[int, int]] = field(default_factory=list)
    purged: int = 0
    persisted: int | None = None
    """None: all is on disk at once."""
    replica_persisted: int | None = None
    replica_log: list[tuple[int, int]] | None = None

    def __post_init__(self) -> None:
        if not self.log:
            self.log = [(0xABC0_0000_0000_0000 + self.number, 0)]

    @property
    def high(self) -> int:
        """The number of the last change."""
        return self.items[-1].seqno if self.items else 0

    def high_of(self, collection: int) -> int:
        """The number of a collection's last change."""
        return max((item.seqno for item in self.items if item.collection == collection), default=0)

    def on_disk(self, node: int) -> int:
        """The last persisted number at a node."""
        result = self.persisted if node == self.node else self.replica_persisted
        return self.high if result is None else result

    def branches(self, node: int) -> list[tuple[int, int]]:
        """The log of the copy at a node."""
        return self.log if node == self.node or self.replica_log is None else self.replica_log

    def purge(self) -> None:
        """Forgets deletions, except a last change, and all but the last change of each document.

        A reader that has not seen the last of the deletions is too old then.
        """
        gone = {item.seqno for item in self.items[:-1] if item.kind in (DELETION, EXPIRATION)}
        newest = {item.seqno for item in self.since(0, {item.collection for item in self.items})}
        self.items = [item for item in self.items if item.seqno in newest - gone]
        self.purged = max([self.purged, *gone])

    def add(self, item: Item) -> Item:
        """Adds a change with the next number; a document's revision is one more than its last one's."""
        last = next(
            (
                single_item
                for single_item in reversed(self.items)
                if (single_item.key, single_item.collection) == (item.key, item.collection)
            ),
            None,
        )
        revision = 1 if last is None else last.revision + 1
        new_item = replace(item, seqno=self.high + 1, revision=revision, cas=next(_CAS))
        self.items.append(new_item)
        return new_item

    def fail_over(self, lost: int) -> None:
        """Makes another copy the active one, without the last changes: a new branch."""
        if lost:
            self.items = self.items[:-lost]
        self.log.insert(0, (next(_UUIDS), self.high))
        if self.persisted is not None:
            self.persisted = min(self.persisted, self.high)

    def rollback(self, start: int, vbuuid: int, snapshot: tuple[int, int], *, ignore_purged: bool) -> int | None:
        """The number to which a stream request is rolled back; None if it is not.

        In the order of the server's rules.
        """
        first, last = snapshot
        if start == 0:
            return None
        if self.purged > start and not ignore_purged:
            return 0
        place = next((index for index, (uuid, _) in enumerate(self.log) if uuid == vbuuid), None)
        if place is None:
            return 0
        upper = self.log[place - 1][1] if place else self.high
        if start == first:
            last = start
        if last <= upper:
            return None
        if start == last:
            first = start
        return upper if upper < first else first

    def since(self, start: int, collections: Container[int]) -> list[Item]:
        """The items of a snapshot from a sequence number until now.

        Of each document the last change, in collections that exist.
        """
        newest: dict[tuple[bytes, int], int] = {}
        behind = [
            item
            for item in self.items
            if item.seqno > start and (item.kind == SYSTEM or item.collection in collections)
        ]
        for item in behind:
            if item.kind != SYSTEM and item.kind not in UNSEEN:
                newest[item.key, item.collection] = item.seqno
        return [
            item
            for item in behind
            if item.kind == SYSTEM or item.kind in UNSEEN or newest[item.key, item.collection] == item.seqno
        ]


@dataclass(slots=True)
class Filter:
    """The filter of a stream: a scope, some collections, or everything if neither is set."""

    scope: int | None = None
    collections: set[int] | None = None
    is_gone: bool = False
    """Whether all its collections have been dropped."""

    def passes(self, item: Item) -> bool:
        """Whether a stream has the change; updates the existing collections from a system event."""
        if self.collections is None:
            return True
        if item.kind != SYSTEM:
            return item.collection in self.collections
        if self.scope is not None:
            if item.scope != self.scope:
                return False
            if item.event == CREATED:
                self.collections.add(item.collection)
            elif item.event == DROPPED:
                self.collections.discard(item.collection)
            self.is_gone = item.event == SCOPE_DROPPED
            return True
        passes = item.collection in self.collections
        if item.event == DROPPED:
            self.collections.discard(item.collection)
            self.is_gone = not self.collections
        return passes


@dataclass(slots=True)
class Collections:
    """A manifest with its ids."""

    uid: int = 0
    scopes: dict[str, int] = field(default_factory=lambda: {"_default": 0})
    collections: dict[tuple[str, str], int] = field(default_factory=lambda: {("_default", "_default"): 0})
    next_id: int = 8

    def scope(self, name: str) -> int:
        """Creates a scope; returns its id."""
        self.uid += 1
        self.scopes[name] = self.next_id
        self.next_id += 1
        return self.scopes[name]

    def collection(self, scope: str, name: str) -> int:
        """Creates a collection; returns its id."""
        self.uid += 1
        self.collections[scope, name] = self.next_id
        self.next_id += 1
        return self.collections[scope, name]

    def drop(self, scope: str, name: str) -> int:
        """Drops a collection; returns its former id."""
        self.uid += 1
        return self.collections.pop((scope, name))

    def drop_scope(self, scope: str) -> tuple[int, list[int]]:
        """Drops a scope; returns its former id and those of its collections."""
        self.uid += 1
        gone = [pair for pair in self.collections if pair[0] == scope]
        return self.scopes.pop(scope), [self.collections.pop(pair) for pair in gone]

    @property
    def ids(self) -> frozenset[int]:
        """The ids of the existing collections."""
        return frozenset(self.collections.values())

    def json(self) -> dict[str, object]:
        """The manifest as clients get it."""
        return {
            "uid": f"{self.uid:x}",
            "scopes": [
                {
                    "name": scope,
                    "uid": f"{at:x}",
                    "collections": [
                        {"name": name, "uid": f"{collection:x}"}
                        for (of, name), collection in self.collections.items()
                        if of == scope
                    ],
                }
                for scope, at in self.scopes.items()
            ],
        }
