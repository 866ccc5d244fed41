"""What a bucket of the test server holds: each vbucket's history with its branches, and the collections. Pure.

Made from the rules of Couchbase's server as its sources and documents state them, not from keelman's client.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

MUTATION, DELETION, EXPIRATION, SYSTEM, PREPARED = 0x57, 0x58, 0x59, 0x5F, 0x00
_CAS = itertools.count(1_700_000_000_000_001)
_UUIDS = itertools.count(0xFA11_0000_0000_0001)


@dataclass(frozen=True, slots=True)
class Item:
    """One change. `key` has no collection id before it; `event`, `version` and `value` are a system event's too."""

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


@dataclass(slots=True)
class History:
    """One vbucket. `log` has (vbuuid, first seqno), the newest first."""

    number: int
    node: int
    replica: int = -1
    items: list[Item] = field(default_factory=list)
    log: list[tuple[int, int]] = field(default_factory=list)
    purged: int = 0
    persisted: int | None = None
    """None: all is on disk at once."""

    def __post_init__(self) -> None:
        if not self.log:
            self.log = [(0xABC0_0000_0000_0000 + self.number, 0)]

    @property
    def high(self) -> int:
        """The last change's number."""
        return self.items[-1].seqno if self.items else 0

    @property
    def on_disk(self) -> int:
        """Up to which all is on disk."""
        return self.high if self.persisted is None else self.persisted

    def add(self, item: Item) -> Item:
        """A change with the next number; a document's revision is one more than its last one's."""
        last = next(
            (one for one in reversed(self.items) if (one.key, one.collection) == (item.key, item.collection)), None
        )
        revision = 1 if last is None else last.revision + 1
        made = replace(item, seqno=self.high + 1, revision=revision, cas=next(_CAS))
        self.items.append(made)
        return made

    def fail_over(self, lost: int) -> None:
        """Another copy becomes the active one, without the last changes: a new branch."""
        if lost:
            self.items = self.items[:-lost]
        self.log.insert(0, (next(_UUIDS), self.high))
        if self.persisted is not None:
            self.persisted = min(self.persisted, self.high)

    def rollback(self, start: int, vbuuid: int, snapshot: tuple[int, int], *, ignore_purged: bool) -> int | None:
        """To which number a stream request is rolled back; None where it is not. In the order of the server's rules."""
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

    def since(self, start: int) -> list[Item]:
        """What a snapshot up to now has behind a number: of each document the last change."""
        newest: dict[tuple[bytes, int], int] = {}
        behind = [one for one in self.items if one.seqno > start]
        for one in behind:
            if one.kind != SYSTEM:
                newest[one.key, one.collection] = one.seqno
        return [one for one in behind if one.kind == SYSTEM or newest[one.key, one.collection] == one.seqno]


@dataclass(slots=True)
class Collections:
    """A manifest with its ids."""

    uid: int = 0
    scopes: dict[str, int] = field(default_factory=lambda: {"_default": 0})
    collections: dict[tuple[str, str], int] = field(default_factory=lambda: {("_default", "_default"): 0})
    next_id: int = 8

    def scope(self, name: str) -> int:
        """A new scope's id."""
        self.uid += 1
        self.scopes[name] = self.next_id
        self.next_id += 1
        return self.scopes[name]

    def collection(self, scope: str, name: str) -> int:
        """A new collection's id."""
        self.uid += 1
        self.collections[scope, name] = self.next_id
        self.next_id += 1
        return self.collections[scope, name]

    def drop(self, scope: str, name: str) -> int:
        """The id that a collection had."""
        self.uid += 1
        return self.collections.pop((scope, name))

    def json(self) -> dict[str, object]:
        """The manifest as clients get it."""
        return {
            "uid": f"{self.uid:x}",
            "scopes": [
                {
                    "name": scope,
                    "uid": f"{at:x}",
                    "collections": [
                        {"name": name, "uid": f"{one:x}"} for (of, name), one in self.collections.items() if of == scope
                    ],
                }
                for scope, at in self.scopes.items()
            ],
        }
