"""The observed generation of a cluster in answers, and the queries that a plan makes."""

import dataclasses
from pathlib import Path

from keelman.model.cluster import BrokerCluster, ExternalBrokers, WorkerCluster, WorkerClusterSpec
from keelman.model.node import Node, NodeState
from keelman.model.workload import Goal, ProcessState, WorkloadStatus
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.executor import FIGURES_SECONDS, LATE_SECONDS, Executor
from keelman.state.planning.draft import Limits
from keelman.state.planning.idle import IdleSparks
from support.state.stores import open_store

LIMITS = Limits(range(8083, 8090), range(9092, 9099), range(7430, 7439))


async def test_a_generation_is_observed_once_it_is_planned(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "state.db")) as store:
        executor = Executor(store, LIMITS, lambda node: node)
        store.listen(executor.changed)

        def observed() -> tuple[int, int, int]:
            brokers: BrokerCluster = store.snapshot.broker_cluster("default")
            workers: WorkerCluster = store.snapshot.worker_cluster("demo")
            return executor.observed(brokers), executor.observed(workers), workers.generation

        async with store.write() as tx:
            broker_clusters.create(tx, "default", ExternalBrokers("127.0.0.1:1"))
            worker_clusters.create(tx, "demo", WorkerClusterSpec("default", count=1))
        assert observed() == (0, 0, 1)
        await executor.reconcile()
        assert observed() == (1, 1, 1)
        async with store.write() as tx:
            worker_clusters.start(tx, "demo", "")
        assert observed() == (1, 1, 2)
        async with store.write() as tx:
            worker_clusters.stop(tx, "demo", "")
        assert observed() == (1, 1, 3)
        await executor.reconcile()
        assert observed() == (1, 3, 3)


async def test_who_does_not_lead_is_told_what_is_planned(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "state.db")) as store:
        follower, revisions = Executor(store, LIMITS, lambda node: node), []
        follower.lead(False)

        def tell(revision: int) -> None:
            revisions.append(revision)
            follower.planned(revision)

        leader = Executor(store, LIMITS, lambda node: node, on_planned=tell)
        for executor in (leader, follower):
            store.listen(executor.changed)
        async with store.write() as tx:
            broker_clusters.create(tx, "default", ExternalBrokers("127.0.0.1:1"))
        async with store.write() as tx:
            worker_clusters.create(tx, "demo", WorkerClusterSpec("default", count=1))
        assert follower.observed(store.snapshot.worker_cluster("demo")) == 0
        await leader.reconcile()
        assert follower.observed(store.snapshot.worker_cluster("demo")) == 1
        async with store.write() as tx:
            worker_clusters.start(tx, "demo", "")
        assert follower.observed(store.snapshot.worker_cluster("demo")) == 1
        await leader.reconcile()
        assert follower.observed(store.snapshot.worker_cluster("demo")) == 2
        assert revisions == sorted(revisions)


async def test_what_hosts_use_is_asked_for_when_there_is_something_to_place(tmp_path: Path) -> None:
    requests: list[str] = []
    now = [0.0]

    def alive(node: Node) -> Node:
        requests.append(node.name)
        return node

    async with open_store(str(tmp_path / "state.db")) as store:
        executor = Executor(store, LIMITS, alive, clock=lambda: now[0])
        store.listen(executor.changed)
        async with store.write() as tx:
            for name in ("n1", "n2"):
                tx.put(Node(name, name, tx.now, tx.now, NodeState.ONLINE, "h:1", address="10.0.0.1"))
            broker_clusters.create(tx, "default", ExternalBrokers("127.0.0.1:1"))
            worker_clusters.create(tx, "demo", WorkerClusterSpec("default", count=1))
        await executor.reconcile()
        assert requests == [], "nothing is to be placed"
        async with store.write() as tx:
            worker_clusters.start(tx, "demo", "")
        await executor.reconcile()
        assert sorted(requests) == ["n1", "n2"]
        async with store.write() as tx:
            worker_clusters.update(tx, "demo", "", lambda spec: dataclasses.replace(spec, count=2))
        await executor.reconcile()
        assert len(requests) == 2, "for a while their former use counts"
        now[0] += FIGURES_SECONDS
        async with store.write() as tx:
            worker_clusters.update(tx, "demo", "", lambda spec: dataclasses.replace(spec, count=3))
        await executor.reconcile()
        assert len(requests) == 4


async def test_a_spark_service_runs_on_for_a_while_without_a_worker(tmp_path: Path) -> None:
    now = [0.0]
    async with open_store(str(tmp_path / "state.db")) as store:
        executor = Executor(store, LIMITS, lambda node: node, clock=lambda: now[0], idle=IdleSparks(60.0))
        store.listen(executor.changed)

        async def obeyed() -> None:
            """Plans, and reports as agents would, until a plan changes nothing."""
            while True:
                await executor.reconcile()
                states = {Goal.RUNNING: ProcessState.RUNNING, Goal.REMOVED: ProcessState.REMOVED}
                behind = [
                    (w, WorkloadStatus(states[w.goal], w.generation))
                    for w in store.snapshot.workloads.values()
                    if w.status is None or w.status.state is not states[w.goal]
                ]
                if not behind:
                    return
                async with store.write() as tx:
                    for workload, status in behind:
                        tx.put(dataclasses.replace(workload, status=status))

        async def used() -> None:
            async with store.write() as tx:
                worker_clusters.create(tx, "demo", WorkerClusterSpec("default", count=1))
                worker_clusters.start(tx, "demo", "")
            await obeyed()
            async with store.write() as tx:
                worker_clusters.delete(tx, "demo", "")
            await obeyed()

        async with store.write() as tx:
            tx.put(Node("n1", "n1", tx.now, tx.now, NodeState.ONLINE, "h:1", address="10.0.0.1"))
            broker_clusters.create(tx, "default", ExternalBrokers("127.0.0.1:1"))
        await used()
        now[0] = 50.0
        await used()
        first = store.snapshot.workloads["spark/n1"]
        assert (first.goal, first.generation) == (Goal.RUNNING, 1), "the second worker found the first one's"
        now[0] = 109.0
        await obeyed()
        assert "spark/n1" in store.snapshot.workloads, "its minute began when the second worker had gone"
        now[0] = 110.0
        await obeyed()
        assert "spark/n1" not in store.snapshot.workloads
        await used()
        now[0] = 200.0
        executor.lead(True)
        await obeyed()
        assert "spark/n1" in store.snapshot.workloads, "a new leader counts from the beginning"
        async with store.write() as tx:
            node = store.snapshot.nodes["n1"]
            tx.put(dataclasses.replace(node, spec=dataclasses.replace(node.spec, draining=True, cordoned=True)))
        await obeyed()
        assert "spark/n1" not in store.snapshot.workloads, "a drained node is emptied at once"


async def test_nothing_is_planned_while_agents_wait_but_not_for_ever(tmp_path: Path) -> None:
    now, waits = [0.0], [True]
    async with open_store(str(tmp_path / "state.db")) as store:
        executor = Executor(store, LIMITS, lambda node: node, clock=lambda: now[0], is_behind=lambda: waits[0])
        store.listen(executor.changed)

        async def observed() -> int:
            await executor.reconcile()
            return executor.observed(store.snapshot.broker_cluster("default"))

        async with store.write() as tx:
            broker_clusters.create(tx, "default", ExternalBrokers("127.0.0.1:1"))
        assert await observed() == 0
        now[0] = LATE_SECONDS - 1
        assert await observed() == 0
        waits[0] = False
        assert await observed() == 1, "planned once they are registered"
        async with store.write() as tx:
            broker_clusters.update(tx, "default", "", lambda _: ExternalBrokers("127.0.0.1:2"))
        waits[0] = True
        assert await observed() == 1
        now[0] += LATE_SECONDS
        assert await observed() == 2, "planned though more and more wait"
