"""Computes the load of each member, and the lightest member that may have some work. Pure: no clock, no randomness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Protocol, TypeAlias

from keelman.model.work import Work
from keelman.worker.group.placement import Labels

# The labels that a connector requires, sorted by key.
Need: TypeAlias = tuple[tuple[str, str], ...]


class Candidate(Protocol):
    """A member, as far as its right to have work is concerned."""

    @property
    def labels(self) -> Labels:
        """Its labels."""

    @property
    def unfit(self) -> str:
        """Why it takes no tasks, empty while it takes them."""


class Rights:
    """Which members may have which work: those with the labels that its connector requires, and tasks only if fit."""

    def __init__(self, members: Mapping[str, Candidate], wants: Mapping[str, Labels]) -> None:
        self._members = members
        self._needs: dict[str, Need] = {connector: tuple(sorted(labels.items())) for connector, labels in wants.items()}
        self._allowed: dict[tuple[Need, bool], frozenset[str]] = {}

    def need(self, connector: str) -> Need:
        """Returns the labels that the connector requires, empty for none."""
        return self._needs.get(connector, ())

    def allowed(self, need: Need, *, tasks: bool) -> frozenset[str]:
        """Returns the members that may have connectors, or tasks, with this need."""
        names = self._allowed.get((need, tasks))
        if names is None:
            names = self._allowed[need, tasks] = frozenset(
                name
                for name, member in self._members.items()
                if not (tasks and member.unfit) and all(member.labels.get(key) == value for key, value in need)
            )
        return names

    def allows(self, work: Work, name: str) -> bool:
        """Returns whether a member may get and keep some work."""
        return name in self.allowed(self.need(work.connector), tasks=work.is_task)


class Scales:
    """The load of each member that takes work: of connectors and of tasks apart."""

    def __init__(
        self, takers: Sequence[str], keeping: Mapping[str, set[Work]], weights: Mapping[Work, int], rights: Rights
    ) -> None:
        """`keeping` is the members' initial work."""
        self._takers = takers
        self._weights = weights
        self._rights = rights
        self._loads: tuple[dict[str, int], dict[str, int]] = (dict.fromkeys(takers, 0), dict.fromkeys(takers, 0))
        self._counts = dict.fromkeys(takers, 0)
        self._siblings: dict[str, Counter[str]] = {}
        self._choices: dict[tuple[Need, bool], _Choice] = {}
        self._choice: _Choice | None = None
        for name in takers:
            for work in keeping[name]:
                self.put(name, work)

    def weight(self, work: Work) -> int:
        """Returns a task's weight, at least 1; a connector's instance weighs 1."""
        return self._weights.get(work, 1)

    def load(self, name: str, *, tasks: bool) -> int:
        """Returns a member's load of connectors or of tasks."""
        return self._loads[tasks][name]

    def put(self, name: str, work: Work) -> None:
        """Gives some work to a member."""
        self._loads[work.is_task][name] += self._weights.get(work, 1)
        self._counts[name] += 1
        if work.is_task:
            siblings = self._siblings.get(work.connector)
            if siblings is None:
                siblings = self._siblings[work.connector] = Counter()
            siblings[name] += 1
            if self._choice is not None and siblings[name] == 1:
                self._choice.joined(name, work.connector)

    def move(self, work: Work, giver: str, taker: str) -> None:
        """Moves the weight of some work; `lightest` is not called after a move."""
        weight, loads = self.weight(work), self._loads[work.is_task]
        loads[giver] -= weight
        loads[taker] += weight

    def lightest(self, work: Work) -> str | None:
        """Returns the member with the least load, among equals the member with the fewest siblings of the work, then
        with the least work in all.

        None when no member may have it. Calls for the work of one connector should follow each other: each such run
        costs a little for each sibling, and each call the logarithm of the number of members.
        """
        need, tasks = self._rights.need(work.connector), work.is_task
        choice = self._choices.get((need, tasks))
        if choice is None:
            allowed = self._rights.allowed(need, tasks=tasks)
            names = [name for name in self._takers if name in allowed]
            choice = self._choices[need, tasks] = _Choice(names, self._loads[tasks], self._counts)
        if choice is not self._choice:  # it was told of no task that others gave out meanwhile
            choice.forget_run()
            self._choice = choice
        siblings = self._siblings.get(work.connector)
        if siblings is None:
            siblings = self._siblings[work.connector] = Counter()
        return choice.lightest(work.connector, siblings)


class _Choice:
    """The members that may have work of one need, lightest first.

    Members that have tasks of the connector whose work is being given out are in a heap of their own. Loads only grow,
    so an entry that is out of date stands too far in front, and is corrected when it is met there.
    """

    def __init__(self, names: Sequence[str], loads: Mapping[str, int], counts: Mapping[str, int]) -> None:
        self._loads, self._counts = loads, counts
        self._names = frozenset(names)
        self._others = [(loads[name], counts[name], name) for name in names]
        heapify(self._others)
        self._connector: str | None = None
        self._siblings: Mapping[str, int] = {}
        self._beside: list[tuple[int, int, int, str]] = []  # load, siblings, all work, name
        self._aside: list[str] = []  # members taken off the others' heap

    def forget_run(self) -> None:
        """Makes the next call read the connector's tasks again."""
        self._connector = None

    def joined(self, name: str, connector: str) -> None:
        """Notes that a member has got its first task of this connector."""
        if connector == self._connector and name in self._names:
            heappush(self._beside, self._key(name))

    def lightest(self, connector: str, siblings: Mapping[str, int]) -> str | None:
        """Returns the lightest member for work of this connector, of which members have these numbers of tasks."""
        if connector != self._connector:
            self._turn_to(connector, siblings)
        others, beside = self._others, self._beside
        while others:
            load, count, name = others[0]
            if name in siblings:
                heappop(others)
                self._aside.append(name)
            elif (load, count) != (self._loads[name], self._counts[name]):
                heapreplace(others, (self._loads[name], self._counts[name], name))
            else:
                break
        while beside and (key := self._key(beside[0][3])) != beside[0]:
            heapreplace(beside, key)
        if others and beside:
            load, count, name = others[0]
            return name if (load, 0, count, name) < beside[0] else beside[0][3]
        return others[0][2] if others else beside[0][3] if beside else None

    def _turn_to(self, connector: str, siblings: Mapping[str, int]) -> None:
        for name in self._aside:
            heappush(self._others, (self._loads[name], self._counts[name], name))
        self._aside.clear()
        self._connector, self._siblings = connector, siblings
        self._beside = [self._key(name) for name in siblings if name in self._names]
        heapify(self._beside)

    def _key(self, name: str) -> tuple[int, int, int, str]:
        return self._loads[name], self._siblings[name], self._counts[name], name


def in_order(works: Iterable[Work]) -> Iterator[Work]:
    """Yields works sorted by connector and task.

    Sorts the names and then each connector's tasks: a single sort of tens of thousands would not let other threads run.
    """
    by_connector: dict[str, list[Work]] = {}
    for work in works:
        by_connector.setdefault(work.connector, []).append(work)
    for connector in sorted(by_connector):
        yield from sorted(by_connector[connector])
