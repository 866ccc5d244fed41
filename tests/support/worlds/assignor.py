"""A world of words for the assignor's tests: workers come, leave and die, and carry out each round's assignments."""

import dataclasses

from keelman.model.work import CONNECTOR_TASK, Work
from keelman.worker.group.assignor import MemberView, Memory, assign
from support.worlds.script import ScriptWorld

DELAY_MS = 300_000


class World(ScriptWorld):
    """A group and its configured connectors; the clock stops until `wait`."""

    def __init__(self) -> None:
        self.members: dict[str, MemberView] = {}
        self.configured: dict[str, int] = {}
        self.wants: dict[str, dict[str, str]] = {}
        self.memory, self.now_ms = Memory(), 0

    def do_worker(self, name: str, url: str = "", **labels: str) -> None:
        self.members[name] = MemberView(url or f"http://{name}/", labels=labels)

    def do_leave(self, name: str) -> None:
        self.members[name] = dataclasses.replace(self.members[name], leaving=True)

    def do_die(self, name: str) -> None:
        del self.members[name]

    def do_connector(self, name: str, tasks: str, **labels: str) -> None:
        self.configured[name] = int(tasks)
        if labels:
            self.wants[name] = labels

    def do_delete(self, name: str) -> None:
        del self.configured[name]

    def do_weigh(self, name: str, work: str, weight: str) -> None:
        view = self.members[name]
        connector, task = work.split("/")
        weights = {**view.weights, Work(connector, int(task)): int(weight)}
        self.members[name] = dataclasses.replace(view, weights=weights)

    def do_wait(self, seconds: str) -> None:
        self.now_ms += int(float(seconds) * 1000)

    def do_round(self) -> list[str]:
        """One round, and what each member runs after it has carried out its assignment."""
        works = [
            Work(name, task) for name, count in self.configured.items() for task in (CONNECTOR_TASK, *range(count))
        ]
        new_assign = assign(
            self.members, works, self.memory, now_ms=self.now_ms, max_delay_ms=DELAY_MS, wants=self.wants
        )
        self.memory, told = new_assign.memory, []
        for name in sorted(self.members):
            view = self.members[name]
            assigned, gone = new_assign.assigned.get(name, frozenset()), new_assign.revoked.get(name, frozenset())
            told += [f"{name} + {shown(assigned)}"] * bool(assigned) + [f"{name} - {shown(gone)}"] * bool(gone)
            self.members[name] = dataclasses.replace(view, owned=(view.owned - gone) | assigned)
        told += [f"no member may have {shown(new_assign.unplaced)}"] * bool(new_assign.unplaced)
        told += [f"the next round in {new_assign.delay_ms / 1000:g} s"] * bool(new_assign.delay_ms)
        return told or ["nothing to do"]

    def do_show(self) -> list[str]:
        return [f"{name}: {shown(view.owned)}" for name, view in sorted(self.members.items())]


def shown(works: frozenset[Work]) -> str:
    """The connectors by their names, the tasks as name/number."""
    return " ".join(f"{w.connector}/{w.task}" if w.is_task else w.connector for w in sorted(works)) or "nothing"
