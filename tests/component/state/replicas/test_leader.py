"""Several state services on one PostgreSQL: the leader does the steps of operations; another continues them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from keelman.model.operation import Operation, OperationKind, OperationState, OperationTarget
from keelman.runtime.supervise import Siblings
from keelman.state.operations.begin import begin
from keelman.state.operations.kinds import OperationProcedure, StepWork
from keelman.state.operations.moves import Done, Outcome, Waiting
from keelman.state.operations.runner import Runner
from keelman.state.replicas.fenced import FencedStore
from keelman.state.replicas.leader import LEADER, LeaderRole
from keelman.state.replicas.lease import Lease, LeaseLost
from keelman.state.resources.hub import Hub
from keelman.state.resources.store import ResourceStore, subjects_of
from support.eventually import eventually
from support.state.stores import open_store

pytestmark = pytest.mark.component
KIND = OperationKind.APPLY_CONNECTOR
FOLLOW_SECONDS = 0.1


class Replica:
    """The part of a state service that runs operations."""

    def __init__(self, store: ResourceStore) -> None:
        self.store, self.lease = store, Lease(store.database, LEADER, seconds=0.9)
        self.calls, self.outcome = 0, Done()
        self._tasks: Siblings | None = None

    async def _step(self, operation: Operation) -> Outcome:
        self.calls += 1
        return self.outcome

    async def _follow(self) -> None:
        while True:
            await self.store.catch_up()
            await asyncio.sleep(FOLLOW_SECONDS)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        commits = Hub()
        self.store.listen(lambda changes: commits.wake(subjects_of(changes)))
        kind = OperationProcedure({"only": StepWork(self._step)})
        async with Siblings() as tasks:
            tasks.start(self._follow())
            runner = Runner(FencedStore(self.store, self.lease), commits, self.lease, {KIND: kind}, 60.0)
            tasks.start(LeaderRole(self.lease, ()).run([("operations", runner.run)]))
            yield


async def test_another_goes_on_with_what_one_began(postgresql: Callable[[], str], tmp_path: Path) -> None:
    url, key = postgresql(), tmp_path / "key"
    async with open_store(url, key_file=key) as store, open_store(url, key_file=key) as other:
        first, second = Replica(store), Replica(other)
        first.outcome = Waiting("not yet", 0.05)
        async with second_later(first, second):
            async with other.write() as tx:  # requested from a service that does not lead
                name = begin(tx, KIND, OperationTarget("topic", "orders"), ["only"], {}).name
            await eventually(lambda: first.calls > 1, what="the leader does it")
            await eventually(lambda: name in other.snapshot.operations and other.snapshot.operations[name].message)
            assert second.calls == 0
            first.lease.clock = lambda: 0.0  # its clock stops from now on
            await eventually(lambda: second.lease.epoch == first.lease.epoch + 1, what="the other one takes over")
            await eventually(lambda: other.snapshot.operations[name].has_ended)
            assert other.snapshot.operations[name].state is OperationState.SUCCEEDED
        with pytest.raises(LeaseLost):
            async with FencedStore(store, first.lease).write():
                pass


@contextlib.asynccontextmanager
async def second_later(first: Replica, second: Replica) -> AsyncIterator[None]:
    """Both run; the first leads."""
    async with first.running():
        await eventually(lambda: first.lease.epoch > 0, what="the first one leads")
        async with second.running():
            yield
