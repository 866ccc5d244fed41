"""Finds addresses that two live workers of one group advertise: a request there reaches the one or the other.

A leader, which knows all addresses, suspects those that it sees twice; other workers suspect their own, where the
leader has it too. A killed worker remains in the group until its session is over, beside its replacement: so nothing is
logged before, and then only if the group's coordinator confirms it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from keelman.kafka.groups.protocol import DescribedMember
from keelman.runtime.logs.logging import get_logger

log = get_logger()
LOOK_SECONDS = 1.0


class SharedAddresses:
    """One per worker: learns of each round, logs each address once, and answers for as long as the problem lasts."""

    def __init__(
        self,
        members: Callable[[], Awaitable[Mapping[str, Sequence[DescribedMember]]]],
        *,
        session: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`members` returns those of the group by their address, none while unknown. `session` is in seconds."""
        self._members = members
        self._patience = session + LOOK_SECONDS
        self._clock = clock
        self._since: dict[str, float] = {}
        self._problems: dict[str, str] = {}
        self._looked = float("-inf")

    def suspect(self, urls: Iterable[str]) -> None:
        """Takes the addresses at which a round has more than one worker; clears all others."""
        now = self._clock()
        self._since = {url: self._since.get(url, now) for url in urls}
        self._problems = {url: problem for url, problem in self._problems.items() if url in self._since}

    def problem(self, url: str) -> str:
        """Returns why nothing is passed on to this address; empty where there is no reason."""
        return self._problems.get(url, "")

    async def look(self) -> None:
        """Queries the group about addresses that no dead member can explain any more. Raises nothing."""
        now = self._clock()
        due = [u for u, since in self._since.items() if u not in self._problems and now - since > self._patience]
        if not due or now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        members = await self._members()
        for url in due if members else ():
            sharers = members.get(url, ())
            if len(sharers) < 2:
                del self._since[url]
                continue
            names = ", ".join(f"{member.member} on {member.host.lstrip('/')}" for member in sharers)
            self._problems[url] = (
                f"{len(sharers)} live workers of this group advertise {url} ({names}): no request is passed on to "
                "them, for any may answer: set rest.advertised.host.name "
                "or rest.advertised.port so that each has its own"
            )
            log.error("address_shared", url=url, error=self._problems[url])
