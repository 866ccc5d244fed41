"""A writing transaction of the store, and the changes that its commit makes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, TypeVar, cast

import sqlalchemy as sa
from sqlmodel.ext.asyncio.session import AsyncSession

from keelman.state.database.database import Turn
from keelman.state.database.times import micros
from keelman.state.resources.noun import CREATED, DELETED, UPDATED, Nouns
from keelman.state.resources.snapshot import Resource, Snapshot

R = TypeVar("R", bound=Resource)


class Change(NamedTuple):
    """A commit's change of a resource; `old` is None for a new resource, `new` for a deleted one."""

    noun: str
    name: str
    old: Any
    new: Any


@dataclass(slots=True)
class Transaction:
    """One writing transaction. `before` is the snapshot at its start, `snapshot` includes its writes so far; `now` is
    the time of everything in it."""

    turn: Turn
    before: Snapshot
    snapshot: Snapshot
    now: datetime
    nouns: Nouns
    events: list[dict[str, Any]] = field(default_factory=list)
    statements: list[sa.Executable] = field(default_factory=list)
    """For tables that belong to no noun; executed at the end."""

    @property
    def session(self) -> AsyncSession:
        """Returns the session, for tables that belong to no noun."""
        return self.turn.session

    def put(self, resource: R) -> R:
        """Stores a resource that is new or has changed, with its event; returns it with its new etag."""
        noun = self.nouns[resource.NOUN]
        is_known = resource.name in self.snapshot.resources(noun.name)
        revision = self.turn.revision + 1
        if noun.has_etag:
            resource = dataclasses.replace(cast(Any, resource), update_time=self.now, etag=str(revision))
        self.snapshot.put(resource)
        self._record(resource, UPDATED if is_known else CREATED)
        return resource

    def drop(self, noun: str, name: str) -> None:
        """Forgets a resource that is gone, with its event."""
        resource = self.snapshot.resources(noun)[name]
        self.snapshot.drop(noun, name)
        self._record(resource, DELETED)

    def _record(self, resource: Resource, kind: Any) -> None:
        self.turn.revision += 1
        self.events.append(
            {
                "revision": self.turn.revision,
                "time": micros(self.now),
                "noun": resource.NOUN,
                "name": resource.name,
                "payload": self.nouns[resource.NOUN].event_bytes(kind, resource, self.turn.revision, self.now),
            }
        )
