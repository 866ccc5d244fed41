"""The one watcher of all parked tasks of a worker: it holds no client for a task, and few objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from keelman.connect.watches import FileWatch, VbucketWatch, Watch
from keelman.runtime.supervise import Siblings
from keelman.worker.parking.file_watches import FileWatches, WatchedFile
from keelman.worker.parking.topic_watches import TopicWatches, WatchedTopics
from keelman.worker.parking.vbucket_watches import VbucketWatches, WatchedVbuckets


class Watched:
    """One watch. `end` it when it is not waited for any more, whether or not it woke."""

    __slots__ = ("_ends", "_wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake: Callable[[], None] | None = wake
        self._ends: list[Callable[[], None]] = []

    def woken(self) -> None:
        """Notifies once that there is more than the watch knows."""
        wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def add_end(self, end: Callable[[], None]) -> None:
        """Adds an action to take at the end."""
        self._ends.append(end)

    def end(self) -> None:
        """Ends the watch."""
        self._wake = None
        for end in self._ends:
            end()
        self._ends.clear()


class Watcher:
    """Watches for all parked tasks of a worker. `begin` it before the first `watch`."""

    def __init__(self, *, client_id: str) -> None:
        self._files = FileWatches()
        self._topics = TopicWatches(client_id=client_id)
        self._vbuckets = VbucketWatches()

    def begin(self, siblings: Siblings) -> None:
        """Sets the scope in which its loops run."""
        siblings.start(self._files.run(), name="file watches")
        self._topics.begin(siblings)
        self._vbuckets.begin(siblings)

    def __len__(self) -> int:
        """Returns how many files and sets of partitions and of vbuckets are watched."""
        return len(self._files) + len(self._topics) + len(self._vbuckets)

    def watch(self, watches: Iterable[Watch], wake: Callable[[], None]) -> Watched:
        """Has `wake` called once as soon as any of them finds more. Never calls it before it returns."""
        watched = Watched(wake)
        for watch in watches:
            if isinstance(watch, FileWatch):
                file = WatchedFile(watch, watched.woken)
                self._files.add(file)
                watched.add_end(lambda file=file: self._files.remove(file))  # type: ignore[misc]
            elif isinstance(watch, VbucketWatch):
                vbuckets = WatchedVbuckets(watch, watched.woken)
                self._vbuckets.add(vbuckets)
                watched.add_end(lambda vbuckets=vbuckets: self._vbuckets.remove(vbuckets))  # type: ignore[misc]
            elif watch.positions:
                topics = WatchedTopics(watch, watched.woken)
                self._topics.add(topics)
                watched.add_end(lambda topics=topics: self._topics.remove(topics))  # type: ignore[misc]
        return watched
