"""Deliberate violations of keelman's rules, one at a time, each of which the simulation must find: `--breakages`.

Each names the rule that must fail. No change is undone: a process that breaks a rule runs nothing else.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from keelman.model.workload import Workload
from keelman.state.planning.draft import Draft
from keelman.state.replicas.heard import Heard
from keelman.state.replicas.lease import Lease
from keelman.state.resources import serving
from keelman.state.resources.store import ResourceStore
from keelman.state.sessions.sessions import Sessions


@dataclass(frozen=True, slots=True)
class Breakage:
    """A violation, and the rule that finds it."""

    rule: str
    what: str
    apply: Callable[[], None]
    seed: int = 1
    """A seed that finds it; it is tried first."""


def _moves_without_generation() -> None:
    put = Draft._put

    def broken(self: Draft, workload: Workload, reason: str) -> None:
        old = self.workloads.get(workload.name)
        if old is not None and old.node != workload.node:
            workload = dataclasses.replace(workload, generation=old.generation)
        put(self, workload, reason)

    Draft._put = broken  # type: ignore[method-assign]


def _judges_at_once() -> None:
    def broken(self: Heard, node: str) -> float:
        beat = self._beats.get(node)
        return float("inf") if beat is None else self.clock() - beat.at

    Heard.silence = broken  # type: ignore[method-assign]


def _gives_ports_twice() -> None:
    def broken(self: Draft, node: str, expected_range: range, count: int = 1, tried: tuple[int, ...] = ()) -> list[int]:
        return [port for port in expected_range if port not in tried][:count]

    Draft.ports = broken  # type: ignore[method-assign]


class _Undone(Exception):
    """Rolls a transaction back."""


def _answers_without_storing() -> None:
    write, numbers = ResourceStore.write, itertools.count()

    @contextlib.asynccontextmanager
    async def taken_back(store: ResourceStore) -> AsyncIterator[Any]:
        with contextlib.suppress(_Undone):
            async with write(store) as tx:
                yield tx
                raise _Undone

    def broken(store: ResourceStore) -> Any:
        of_rpc = sys._getframe(1).f_globals["__name__"] == serving.__name__
        return write(store) if not of_rpc or next(numbers) % 5 else taken_back(store)

    ResourceStore.write = broken  # type: ignore[method-assign]


def _plans_without_the_lease() -> None:
    async def broken(self: Lease, tx: Any) -> None:
        """Trusts the lease in memory."""

    async def confirm(self: Lease) -> None:
        self._confirmed = self.clock()

    Lease.check = broken  # type: ignore[method-assign]
    Lease.confirm = confirm  # type: ignore[method-assign]


def _forgets_to_say_what_changed() -> None:
    Sessions._send_assignments = _only_complete(Sessions._send_assignments)  # type: ignore[method-assign]


def _only_complete(send: Any) -> Any:
    async def broken(self: Sessions, session: Any, old: int, *args: Any, complete: bool = False) -> None:
        if complete or old % 7:
            await send(self, session, old, *args, complete=complete)

    return broken


BREAKAGES = {
    "moves-without-generation": Breakage(
        "started-twice", "a worker that moves keeps its generation", _moves_without_generation, seed=3
    ),
    "judges-at-once": Breakage(
        "offline-though-heard", "who was not heard yet counts as silent after a start", _judges_at_once, seed=9
    ),
    "gives-ports-twice": Breakage("ports", "the planner does not look who has a port", _gives_ports_twice, seed=4),
    "answers-without-storing": Breakage(
        "acknowledged", "one change of five is acknowledged and taken back", _answers_without_storing, seed=1
    ),
    "plans-without-the-lease": Breakage(
        "one-leader",
        "a leader that was frozen goes on without asking whose the lease is",
        _plans_without_the_lease,
        seed=1,
    ),
    "forgets-to-say": Breakage(
        "converges", "some changes of assignments are not sent", _forgets_to_say_what_changed, seed=8
    ),
}
"""By name."""
