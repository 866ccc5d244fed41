"""Notes members of another kind that keep a worker out of its group: dead ones, which lapse, or live ones.

A worker that is killed stays a member until its session is over. The coordinator answers a join with another protocol
meanwhile with INCONSISTENT_GROUP_PROTOCOL, whether members are dead or alive, and DescribeGroups tells neither when a
member was heard last nor how long its session is. So time decides: a dead member is gone after its session time-out,
and no member joins among the dead. Source: https://kafka.apache.org/documentation/#connectconfigs_session.timeout.ms
(10 seconds unless set).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

JAVA_SESSION_SECONDS = 10.0
MARGIN_SECONDS = 5.0
STABLE = "Stable"


@dataclass(slots=True)
class FormerMembers:
    """Notes the answers of DescribeGroups each time that the group refuses; pure. All times are in seconds."""

    session: float
    """The session time-out that they have if they had this worker's properties."""
    rebalance: float
    """The time that a round of the group may wait for members, which do not lapse meanwhile."""
    since: float | None = None
    """The time when they were seen first; None while no member is waited for."""
    _first: frozenset[str] = field(default_factory=frozenset)

    @property
    def limit(self) -> float:
        """The time for which dead members may be there: a session, at least Java's default, and a margin."""
        return max(self.session, JAVA_SESSION_SECONDS) + MARGIN_SECONDS

    def may_lapse(self, members: Iterable[str], state: str, now: float) -> bool:
        """Returns whether these members may all be dead; from the first call on, until `forget`."""
        present = frozenset(members)
        if self.since is None:
            self.since, self._first = now, present
        limit = self.limit if state == STABLE else self.limit + self.rebalance
        return present <= self._first and now - self.since < limit

    def forget(self) -> None:
        """Forgets members that are gone: others that come later are new ones."""
        self.since, self._first = None, frozenset()
