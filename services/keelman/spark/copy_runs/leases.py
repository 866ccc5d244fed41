"""Leases: each worker's right to its copy runs, and the link for their updates. No I/O but the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.api.copy.v1.worker_link_service_pb2 import Bounds
from keelman.model.errors import Conflict
from keelman.spark.copy_runs.runs import Owner

KEPT_SUPERSEDED = 1_000


class Link(Protocol):
    """The link that a worker's updates go to."""

    def put(self, update: RunUpdate) -> None:
        """Passes one on; never blocks."""


@dataclass(slots=True)
class WorkerLease:
    """A worker's right to its copy runs."""

    deadline: float
    link: Link | None = None
    lapsed: bool = False
    bounds: Bounds = field(default_factory=Bounds)
    routes: Mapping[str, str] = field(default_factory=dict)


class Leases:
    """The leases of all workers, one for each start of a worker process."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        """A lease that is not renewed for `seconds` of the monotonic `clock` lapses."""
        self._seconds, self._clock = seconds, clock
        self._leases: dict[Owner, WorkerLease] = {}
        self._superseded: dict[Owner, None] = {}

    def __iter__(self) -> Iterator[Owner]:
        return iter(self._leases)

    def __len__(self) -> int:
        return len(self._leases)

    def grant(
        self,
        owner: Owner,
        link: Link,
        others: Iterable[Owner],
        bounds: Bounds | None = None,
        routes: Mapping[str, str] | None = None,
    ) -> list[Owner]:
        """Grants a lease to a worker that opened a link; ends and returns older incarnations, those among `others` too.

        `bounds` limits the worker's slots, `routes` are host names of their own; None: without them.

        Raises Conflict for an incarnation that another one has replaced.
        """
        if owner in self._superseded:
            raise Conflict(
                f"worker {owner.worker} was started again since: this incarnation may copy no more", reason="SUPERSEDED"
            )
        old = [o for o in {*self._leases, *others} if o != owner and o.address == owner.address]
        for other in old:
            self._leases.pop(other, None)
            self._superseded[other] = None
        while len(self._superseded) > KEPT_SUPERSEDED:
            self._superseded.pop(next(iter(self._superseded)))
        lease = self._leases.setdefault(owner, WorkerLease(0.0))
        lease.link, lease.bounds, lease.routes = link, bounds or Bounds(), dict(routes or {})
        self.renew(owner)
        return old

    def renew(self, owner: Owner) -> bool:
        """Renews the lease; returns False when another incarnation has taken the worker's place."""
        lease = self._leases.get(owner)
        if lease is None:
            return False
        lease.deadline, lease.lapsed = self._clock() + self._seconds, False
        return True

    def slept(self, seconds: float) -> None:
        """Extends leases when this process was not awake for so long: renewals of that time are not read yet, and each
        has its chance."""
        longest = self._clock() + self._seconds
        for lease in self._leases.values():
            lease.deadline = min(lease.deadline + seconds, longest)

    def bounds(self, owner: Owner) -> Bounds:
        """Returns the bounds of the worker's slots together."""
        lease = self._leases.get(owner)
        return lease.bounds if lease is not None else Bounds()

    def routes(self, owner: Owner) -> Mapping[str, str]:
        """Returns addresses of the host names that only the worker's slots have."""
        lease = self._leases.get(owner)
        return lease.routes if lease is not None else {}

    def stands(self, owner: Owner) -> bool:
        """Returns whether there is a lease that has not lapsed."""
        lease = self._leases.get(owner)
        return lease is not None and not lease.lapsed

    def holds(self, owner: Owner, link: Link) -> bool:
        """Returns whether this is the owner's present link."""
        lease = self._leases.get(owner)
        return lease is not None and lease.link is link

    def unlink(self, owner: Owner, link: Link) -> None:
        """Takes note of a closed link; the lease continues until it lapses."""
        if self.holds(owner, link):
            self._leases[owner].link = None

    def send(self, owner: Owner, update: RunUpdate) -> None:
        """Passes an update on; drops it for a worker without a link, since its next welcome has the whole state."""
        lease = self._leases.get(owner)
        if lease is not None and lease.link is not None:
            lease.link.put(update)

    def lapse(self) -> list[Owner]:
        """Returns the owners whose lease lapsed since the last call; forgets the lapsed leases without a link."""
        now, lapsed = self._clock(), []
        for owner, lease in list(self._leases.items()):
            if now <= lease.deadline:
                continue
            if not lease.lapsed:
                lease.lapsed = True
                lapsed.append(owner)
            if lease.link is None:
                del self._leases[owner]
        return lapsed
