"""A world of words for parking: tasks have nothing to copy, files and topics grow, tasks are removed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from keelman.connect.watches import FileWatch, Watch
from keelman.model.work import Work
from keelman.worker.parking.parking import Parkable, Parking
from support.worlds.script import ScriptWorld


class Task:
    """Notes the calls that it receives."""

    def __init__(self, name: str, said: list[str]) -> None:
        self.name, self.said, self.watch = name, said, cast("Watch | None", None)

    def park(self, watches: Sequence[Watch]) -> None:
        self.said.append(f"{self.name} parks")

    def wake(self) -> None:
        self.watch = None
        self.said.append(f"{self.name} wakes")


class Looker:
    """A watcher that is notified when there is more."""

    def __init__(self, said: list[str]) -> None:
        self.said = said
        self.waiting: dict[int, tuple[Sequence[Watch], Callable[[], None]]] = {}

    def watch(self, watches: Sequence[Watch], more: Callable[[], None]) -> Any:
        self.waiting[key := len(self.waiting)] = (list(watches), more)
        looker = self

        class Watched:
            def end(self) -> None:
                looker.waiting.pop(key, None)

        return Watched()


class World(ScriptWorld):
    """A worker's tasks: of sources, which park by themselves, and of sinks, which park with their siblings."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.tasks: dict[Work, Task] = {}
        self.sinks: set[str] = set()
        self.looker = Looker(self.said)
        self.parking = Parking(cast("Any", self.looker), self.together)

    def run(self, line: str) -> list[str]:
        """Runs one command; returns its output lines."""
        self.said.clear()
        super().run(line)
        return [*self.said]

    def together(self, work: Work) -> Mapping[Work, Parkable] | None:
        if work.connector not in self.sinks:
            return {work: self.tasks[work]}
        return {name: task for name, task in self.tasks.items() if name.connector == work.connector}

    def do_source(self, name: str, tasks: str) -> None:
        self.tasks |= {Work(name, n): Task(f"{name}/{n}", self.said) for n in range(int(tasks))}

    def do_sink(self, name: str, tasks: str) -> None:
        self.sinks.add(name)
        self.do_source(name, tasks)

    def do_idle(self, task: str, file: str) -> None:
        """A task has copied all of a file (which represents any input)."""
        work = work_of(task)
        self.tasks[work].watch = FileWatch(file, 0, 0)
        self.parking.idle(work)

    def do_grows(self, file: str) -> None:
        for watches, more in list(self.looker.waiting.values()):
            if any(isinstance(watch, FileWatch) and watch.path == file for watch in watches):
                more()

    def do_leaves(self, task: str) -> None:
        """Removes a task from the worker, as when it is paused or restarted."""
        self.parking.left(work_of(task))

    def do_show(self) -> None:
        self.said.append(f"{len(self.parking)} parked, {len(self.looker.waiting)} watched")


def work_of(task: str) -> Work:
    """A unit of work from name/number."""
    connector, number = task.split("/")
    return Work(connector, int(number))
