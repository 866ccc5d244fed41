"""Takes tasks that have nothing to copy out of their slots, and brings them back when there is more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from keelman.connect.watches import TopicWatch, Watch
from keelman.model.work import Work
from keelman.runtime.logs.logging import get_logger
from keelman.worker.parking.watcher import Watched, Watcher

log = get_logger()


class Parkable(Protocol):
    """A task that can be parked."""

    @property
    def watch(self) -> Watch | None:
        """The watch that it waits for while it has nothing to copy; else None."""

    def park(self, watches: Sequence[Watch]) -> None:
        """Drains its copy run and waits until `wake`; `watches` are of all that park with it."""

    def wake(self) -> None:
        """Notes that there is something to copy."""


# The tasks that park together with a task; None when they may not: some are not here, or have to end.
Together = Callable[[Work], Mapping[Work, Parkable] | None]


class Parking:
    """Sources park a task at a time, sinks a whole connector: its last task would be given the others' partitions."""

    def __init__(self, watcher: Watcher, together: Together) -> None:
        self._watcher = watcher
        self._together = together
        self._parked: dict[Work, _Lot] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def idle(self, work: Work) -> None:
        """Parks a task that has nothing to copy in its slot, and those that park with it, if all are idle."""
        if work in self._parked:
            return
        tasks = self._together(work)
        if tasks is None or any(task.watch is None for task in tasks.values()):
            return
        watches = merged(task.watch for task in tasks.values() if task.watch is not None)
        lot = _Lot(tasks)
        for number, task in tasks.items():
            self._parked[number] = lot
            task.park(watches)
        lot.watched = self._watcher.watch(watches, lambda: self._wake(lot))

    def left(self, work: Work) -> None:
        """Brings back the tasks that parked with a task that is no longer parked, whatever the reason."""
        lot = self._parked.get(work)
        if lot is not None:
            self._wake(lot)

    def _wake(self, lot: _Lot) -> None:
        if lot.watched is not None:
            lot.watched.end()
        for work, task in lot.tasks.items():
            if self._parked.pop(work, None) is not None:
                task.wake()


class _Lot:
    """Tasks that parked together."""

    __slots__ = ("tasks", "watched")

    def __init__(self, tasks: Mapping[Work, Parkable]) -> None:
        self.tasks = tasks
        self.watched: Watched | None = None


def merged(watches: Iterable[Watch]) -> list[Watch]:
    """Returns the watches with those of the same cluster made one; of two positions in a partition the earlier counts,
    of two ids of a topic none."""
    others: list[Watch] = []
    topics: dict[frozenset[tuple[str, str]], TopicWatch] = {}
    for watch in watches:
        if not isinstance(watch, TopicWatch):
            others.append(watch)
            continue
        key = frozenset(watch.properties.items())
        known_topic = topics.get(key)
        if known_topic is None:
            topics[key] = watch
            continue
        positions = dict(known_topic.positions)
        for part, offset in watch.positions.items():
            positions[part] = min(offset, positions.get(part, offset))
        ids = {**known_topic.ids, **watch.ids}
        ids = {
            t: identifier
            for t, identifier in ids.items()
            if known_topic.ids.get(t, identifier) == watch.ids.get(t, identifier)
        }
        topics[key] = TopicWatch(known_topic.properties, positions, ids)
    return [*others, *topics.values()]
