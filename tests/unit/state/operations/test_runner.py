"""Operations of scripted steps, with a database of their own."""

import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keelman.api.connect.v1 import operation_service_pb2 as pb
from keelman.model.cluster import ExternalBrokers, WorkerClusterSpec
from keelman.model.errors import Conflict, FailedPrecondition, InvalidArgument, KeelmanError, NotFound, Unavailable
from keelman.model.operation import Operation, OperationKind, OperationState, OperationTarget, StepState
from keelman.runtime.supervise import Siblings
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.nouns.operation import cancel, delete
from keelman.state.operations.begin import begin
from keelman.state.operations.kinds import OperationProcedure, StepWork
from keelman.state.operations.moves import Done, Outcome, Waiting
from keelman.state.operations.runner import Runner
from keelman.state.replicas.leader import LEADER
from keelman.state.replicas.lease import Lease
from keelman.state.resources.hub import Hub
from keelman.state.resources.store import ResourceStore, subjects_of
from keelman.state.resources.transaction import Transaction
from support.eventually import eventually
from support.state.stores import open_store

KIND = OperationKind.APPLY_CONNECTOR
ORDERS = OperationTarget("connector_definition", "orders", 3, "RUNNING")


class Script:
    """Steps with outcomes of the test: each in turn, the last one again and again."""

    def __init__(self) -> None:
        self.outcomes: dict[str, list[Outcome | Exception]] = {}
        self.calls: list[str] = []
        self.stored: list[OperationState] = []
        self.takes_back = True
        self.seconds: float | None = None

    def procedure(self, *names: str) -> OperationProcedure:
        """A procedure with these steps."""
        steps = {n: StepWork(self._work(n), self._work(f"undo {n}"), self.seconds) for n in names}
        return OperationProcedure(
            steps, lambda operation: self.takes_back, lambda tx, operation: self.stored.append(operation.state)
        )

    def _work(self, name: str) -> Callable[[Operation], object]:
        async def work(operation: Operation) -> Outcome:
            self.calls.append(name)
            outcomes = self.outcomes.get(name, [Done()])
            outcome = outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return work


@asynccontextmanager
async def running(
    store: ResourceStore, procedure: OperationProcedure, *, wait_seconds: float = 60.0
) -> AsyncIterator[None]:
    commits = Hub()
    store.listen(lambda changes: commits.wake(subjects_of(changes)))
    lease = Lease(store.database, LEADER)
    async with Siblings() as group:
        group.start(Runner(store, commits, lease, {KIND: procedure}, wait_seconds).run())
        yield


async def begun(store: ResourceStore, *steps: str) -> str:
    async with store.write() as tx:
        return begin(tx, KIND, ORDERS, steps, {"config": {"db.password": "s3cret", "a": "b"}}).name


async def at_end(store: ResourceStore, name: str) -> Operation:
    await eventually(lambda: store.snapshot.operations[name].has_ended)
    return store.snapshot.operations[name]


async def test_steps_are_done_in_their_order(tmp_path: Path) -> None:
    script = Script()
    script.outcomes = {"b": [Waiting("not yet", 0.01), Done("found it", {"uid": "u1"})], "c": [Done(skipped=True)]}
    async with open_store(str(tmp_path / "state.db")) as store, running(store, script.procedure("a", "b", "c")):
        operation = await at_end(store, await begun(store, "a", "b", "c"))
    assert script.calls == ["a", "b", "b", "c"]
    assert [(s.state, s.attempts) for s in operation.steps] == [
        (StepState.DONE, 1), (StepState.DONE, 2), (StepState.SKIPPED, 1),
    ]  # fmt: skip
    assert (operation.state, operation.message, operation.facts["uid"]) == (OperationState.SUCCEEDED, "", "u1")
    assert script.stored[-1] is OperationState.SUCCEEDED


async def test_it_is_read_again_as_it_was_with_its_secrets_sealed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    script = Script()
    script.outcomes = {"a": [InvalidArgument("a: s3cret is not legal", reason="NO")]}
    async with open_store(str(path)) as store, running(store, script.procedure("a")):
        stored = await at_end(store, await begun(store, "a", "b"))
    assert (stored.message, stored.steps[0].message) == ("a: [hidden] is not legal",) * 2
    for file in tmp_path.glob("state.db*"):
        assert b"s3cret" not in file.read_bytes()
    async with open_store(str(path)) as store:
        assert store.snapshot.operations == {stored.name: stored}
        assert stored.facts["config"]["db.password"] == "s3cret"


async def test_a_refusal_fails_at_once_and_what_was_done_is_taken_back(tmp_path: Path) -> None:
    script = Script()
    script.outcomes = {
        "b": [InvalidArgument("tasks.max: 0 is not legal", reason="CONFIG_REFUSED")],
        "undo a": [Unavailable("away"), Done("put back")],
    }
    async with open_store(str(tmp_path / "state.db")) as store, running(store, script.procedure("a", "b", "c")):
        operation = await at_end(store, await begun(store, "a", "b", "c"))
    assert script.calls == ["a", "b", "undo b", "undo a", "undo a"]
    assert [s.state for s in operation.steps] == [StepState.UNDONE, StepState.FAILED, StepState.PENDING]
    assert (operation.state, operation.message) == (OperationState.FAILED, "tasks.max: 0 is not legal")


async def test_without_a_way_back_what_was_done_stays(tmp_path: Path) -> None:
    script = Script()
    script.takes_back, script.outcomes = False, {"b": [RuntimeError("a bug")]}
    async with open_store(str(tmp_path / "state.db")) as store, running(store, script.procedure("a", "b")):
        operation = await at_end(store, await begun(store, "a", "b"))
    assert [s.state for s in operation.steps] == [StepState.DONE, StepState.FAILED]
    assert (operation.state, operation.message) == (OperationState.FAILED, "RuntimeError: a bug")


@pytest.mark.parametrize("error", [Unavailable("cluster away"), Conflict("a rebalance is under way")])
async def test_what_may_pass_is_waited_for_until_the_deadline(tmp_path: Path, error: KeelmanError) -> None:
    script = Script()
    script.outcomes, script.seconds = {"a": [error]}, 0.5
    async with open_store(str(tmp_path / "state.db")) as store, running(store, script.procedure("a")):
        name = await begun(store, "a")
        await eventually(lambda: "; waits until " in store.snapshot.operations[name].message)
        assert store.snapshot.operations[name].message.startswith(error.message)
        operation = await at_end(store, name)
    assert operation.error is not None
    assert (operation.error.code, operation.error.reason) == ("DEADLINE_EXCEEDED", "STEP_DEADLINE")
    assert operation.message == f"a took longer than 0.5 s: {error.message}"
    assert operation.steps[0].attempts > 1


async def test_a_fault_where_an_end_is_noted_ends_no_service(tmp_path: Path) -> None:
    faults = [RuntimeError("a bug"), FailedPrecondition("another")]

    def noted(tx: Transaction, operation: Operation) -> None:
        if operation.has_ended and faults:
            raise faults.pop()

    procedure = dataclasses.replace(Script().procedure("a"), stored=noted)
    async with open_store(str(tmp_path / "state.db")) as store, running(store, procedure):
        assert (await at_end(store, await begun(store, "a"))).state is OperationState.SUCCEEDED
    assert not faults


async def test_one_that_is_canceled_is_taken_back_at_once(tmp_path: Path) -> None:
    script = Script()
    script.outcomes = {"b": [Waiting("not yet", 3600.0)]}
    async with open_store(str(tmp_path / "state.db")) as store, running(store, script.procedure("a", "b")):
        name = await begun(store, "a", "b")
        await eventually(lambda: "b" in script.calls)
        async with store.write() as tx:
            requested_cancel = cancel(tx, pb.CancelOperationRequest(name=name, reason="too slow"))
            assert (
                cancel(tx, pb.CancelOperationRequest(name=name, etag=requested_cancel.etag, reason="again"))
                == requested_cancel
            )
        operation = await at_end(store, name)
        assert [s.state for s in operation.steps] == [StepState.UNDONE, StepState.UNDONE]
        assert (operation.state, operation.message) == (OperationState.CANCELED, "canceled: too slow")
        with pytest.raises(FailedPrecondition, match="has ended: CANCELED"):
            async with store.write() as tx:
                cancel(tx, pb.CancelOperationRequest(name=name))
        async with store.write() as tx:
            delete(tx, pb.DeleteOperationRequest(name=name))
        with pytest.raises(NotFound):
            store.snapshot.operation(name)


async def test_a_target_has_one_operation_at_a_time(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "state.db")) as store:
        name = await begun(store, "a")
        with pytest.raises(FailedPrecondition) as refused:
            await begun(store, "a")
        assert refused.value.reason == "OPERATION_UNDER_WAY"
        assert refused.value.metadata["operation"] == name
        with pytest.raises(FailedPrecondition, match="has not ended: cancel it first"):
            async with store.write() as tx:
                delete(tx, pb.DeleteOperationRequest(name=name))
        async with running(store, Script().procedure("a")):
            await at_end(store, name)
            assert await begun(store, "a") > name


async def test_a_step_that_was_begun_before_a_crash_is_done_again(tmp_path: Path) -> None:
    path = str(tmp_path / "state.db")
    first = Script()
    first.outcomes = {"b": [Waiting("not yet", 3600.0)]}
    async with open_store(path) as store, running(store, first.procedure("a", "b")):
        name = await begun(store, "a", "b")
        await eventually(lambda: store.snapshot.operations[name].message.startswith("not yet"))
    again = Script()
    async with open_store(path) as store, running(store, again.procedure("a", "b")):
        operation = await at_end(store, name)
    assert (again.calls, operation.state) == (["b"], OperationState.SUCCEEDED)


async def test_its_times_come_back_as_they_were(tmp_path: Path) -> None:
    path, now = str(tmp_path / "state.db"), datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
    async with open_store(path) as store:
        name = await begun(store, "a")
        async with store.write() as tx:
            operation = tx.snapshot.operations[name]
            step = dataclasses.replace(operation.steps[0], start_time=now, end_time=now, undo_time=now)
            later = now + timedelta(hours=1)
            stored = tx.put(dataclasses.replace(operation, steps=(step,), back_time=now, end_time=later))
    async with open_store(path) as store:
        assert store.snapshot.operations[name] == stored


@pytest.mark.parametrize(
    ("target", "facts"),
    [(ORDERS, {"worker_cluster": "demo"}), (OperationTarget("worker_cluster", "demo", 1, "2 workers"), {})],
)
async def test_what_waits_goes_on_as_soon_as_its_worker_cluster_changes(
    tmp_path: Path, target: OperationTarget, facts: dict[str, str]
) -> None:
    script = Script()
    script.outcomes = {"a": [Waiting("its workers are STARTING", 600.0), Done()]}
    async with open_store(str(tmp_path / "state.db")) as store, running(store, script.procedure("a")):
        async with store.write() as tx:
            broker_clusters.create(tx, "brokers", ExternalBrokers("127.0.0.1:1"))
            name = begin(tx, KIND, target, ["a"], facts).name
        await eventually(lambda: "STARTING" in store.snapshot.operations[name].message)
        async with store.write() as tx:
            worker_clusters.create(tx, "other", WorkerClusterSpec("brokers", count=1))
        assert not store.snapshot.operations[name].has_ended
        async with store.write() as tx:
            worker_clusters.create(tx, "demo", WorkerClusterSpec("brokers", count=1))
        assert (await at_end(store, name)).steps[0].attempts == 2
