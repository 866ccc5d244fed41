"""For any sequence of events, the plans for drivers of Spark clusters are safe, settle, and follow the latest specs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.model.cluster import ClusterGoal, ClusterState
from keelman.model.node import NodeState
from keelman.model.workload import Goal, ProcessState, SparkSpec, WorkerSpec, Workload, WorkloadKind
from keelman.state.clusters.spark_status import spark_cluster_status
from property.test_planner import NODES, Checked

node = st.sampled_from(sorted(NODES))
step = st.one_of(
    st.tuples(st.just("node"), node, st.sampled_from(["online", "offline"])),
    st.tuples(st.sampled_from(["cordon", "drain", "uncordon"]), node),
    st.tuples(st.sampled_from(["start", "stop", "kill", "delete"]), st.sampled_from(["a", "b"])),
    st.tuples(st.just("use"), st.sampled_from(["a", "b"]), st.sampled_from(["big", "other", ""])),
    st.tuples(st.just("drivers"), st.sampled_from(["1", "2", "3"])),
    st.tuples(st.just("master"), st.sampled_from(["spark://m:7077", "spark://n:7077"])),
    st.tuples(st.just("nodes"), st.lists(node, max_size=2, unique=True).map(",".join)),
    st.tuples(st.just("tenants"), node, st.sampled_from(["on", "off"])),
    st.tuples(st.just("linger"), st.sampled_from(["@big/0", "@big/1"])),
    st.tuples(st.just("linger")),
    st.tuples(st.just("obey")),
    st.tuples(st.just("obey-one"), st.integers(0, 30)),
    st.tuples(st.just("fail"), st.integers(0, 30), st.sampled_from(["PORT_TAKEN", "EXITED"])),
)


class CheckedDrivers(Checked):
    """Checks each plan with Spark clusters when it is applied."""

    def do_linger(self, *nodes: str) -> None:
        over = {self.workloads[name].node for name in self.lingering if name in self.workloads}
        super().do_linger(*nodes)
        self.over = over

    def settle(self) -> None:
        runs = {d.name: d for d in self._drivers() if d.goal is Goal.RUNNING and d.is_in(ProcessState.RUNNING)}
        super().settle()
        self._check_places()
        self._check_one_driver_at_a_time(runs)

    def check_change(self, old: Workload | None, new: Workload) -> None:
        if new.kind is not WorkloadKind.SPARK or not new.cluster:
            super().check_change(old, new)
        elif old is not None:
            assert new.generation > old.generation, "one that moves and is not needed any more has two"
        if new.kind is WorkloadKind.SPARK and new.cluster and (old is None or old.node != new.node):
            assert self.nodes[new.node].takes_new

    def check_one_by_one(self, cluster, before) -> None:  # of workers, whose transcripts have it
        pass

    def check_sparks(self) -> None:
        for workload in self.workloads.values():
            spec = workload.spec
            if not isinstance(spec, WorkerSpec) or workload.goal is not Goal.RUNNING or not spec.spark_cluster:
                continue
            drivers = self.snapshot.workloads_in(WorkloadKind.SPARK, spec.spark_cluster)
            good = {d.address for d in drivers if d.goal is Goal.RUNNING}
            assert good & set(spec.spark_address.split(",")), "a running worker knows a driver that runs"

    def _drivers(self) -> list[Workload]:
        return [w for w in self.workloads.values() if isinstance(w.spec, SparkSpec) and w.spec.cluster]

    def _check_places(self) -> None:
        for name, spark in self.sparks.items():
            drivers = [d for d in self._drivers() if d.cluster == name and d.goal is Goal.RUNNING]
            is_named = any(
                c.spec.spark_cluster == name and c.goal is ClusterGoal.RUNNING for c in self.workers.values()
            )
            may = [n for n in self.nodes.values() if n.takes_new and n.name in (spark.spec.nodes or NODES)]
            if is_named and may and not spark.note:
                assert len(drivers) >= spark.spec.wanted_drivers
            assert len(drivers) <= spark.spec.wanted_drivers or not is_named

    def _check_one_driver_at_a_time(self, ran: dict[str, Workload]) -> None:
        """No driver of a node that is online stops for a move or a change while another one does not run."""
        for name, spark in self.sparks.items():
            present = [d for d in self._drivers() if d.cluster == name and d.goal is Goal.RUNNING]
            online = [d for d in present if self.nodes[d.node].state is NodeState.ONLINE]
            stopped = [
                d for d in present
                if d.name in ran and ran[d.name].generation != d.generation
                and self.nodes[ran[d.name].node].state is NodeState.ONLINE
            ]  # fmt: skip
            assert len(stopped) <= 1
            if stopped:
                others = [d for d in online if d.name != stopped[0].name]
                assert all(d.is_in(ProcessState.RUNNING) for d in others), spark.spec


def world() -> CheckedDrivers:
    checked = CheckedDrivers()
    for name, host in NODES.items():
        checked.do_node(name, "online", host)
    checked.do_external("default", "kafka:9092")
    checked.do_spark("big")
    checked.do_spark("other", drivers="1")
    checked.do_workers("a", "default", count="2", spark="big")
    checked.do_workers("b", "default", nodes="n1,n2")
    checked.do_start("workers", "a")
    checked.settle()
    checked.do_obey()
    checked.settle()
    return checked


def do(checked: CheckedDrivers, words: tuple) -> None:
    match words:
        case ("node", name, state):
            checked.do_node(name, state, NODES[name])
        case ("cordon" | "drain" | "uncordon" as verb, name):
            getattr(checked, f"do_{verb}")(name)
        case ("start" | "stop" | "delete" as verb, name) if alive(checked, name):
            getattr(checked, f"do_{verb}")("workers", name)
        case ("kill", name) if alive(checked, name):
            checked.do_kill(name)
        case ("use", name, spark) if alive(checked, name):
            checked.do_update(name, spark=spark)
        case ("drivers", number):
            checked.do_spark("big", drivers=number)
        case ("master", url):
            checked.do_spark("big", master=url)
        case ("nodes", names):
            checked.do_spark("big", nodes=names)
        case ("tenants", name, on):
            checked.do_tenants(name, on)
        case ("linger", *names):
            checked.do_linger(*names)
        case ("obey",):
            checked.do_obey()
        case ("obey-one", number) if checked.workloads:
            checked.do_obey(sorted(checked.workloads)[number % len(checked.workloads)])
        case ("fail", number, reason) if checked.workloads:
            checked.do_report(sorted(checked.workloads)[number % len(checked.workloads)], "FAILED", reason)


def alive(checked: CheckedDrivers, name: str) -> bool:
    return name in checked.workers and checked.workers[name].goal is not ClusterGoal.DELETED


@settings(max_examples=100, deadline=None)
@given(st.lists(step, max_size=25))
def test_every_plan_for_drivers_is_safe_and_settles(steps: list[tuple]) -> None:
    new_world = world()
    for words in steps:
        do(new_world, words)
        new_world.settle()
    new_world.do_linger()
    for name, host in NODES.items():
        new_world.do_node(name, "online", host)
        new_world.do_uncordon(name)
    new_world.do_spark("big", nodes="")
    for _ in range(20):
        new_world.settle()
        new_world.do_obey()
    new_world.settle()
    snapshot = new_world.snapshot
    for name, spark in new_world.sparks.items():
        users = [c for c in snapshot.users_of_spark(name) if c.goal is ClusterGoal.RUNNING]
        drivers = snapshot.workloads_in(WorkloadKind.SPARK, name)
        status = spark_cluster_status(spark, snapshot)
        assert status.state is (ClusterState.RUNNING if users else ClusterState.STOPPED), status
        assert len(drivers) == (spark.spec.wanted_drivers if users else 0)
        assert len({d.node for d in drivers}) == len(drivers), "each on a node of its own"
        assert all(isinstance(d.spec, SparkSpec) and d.spec.master == spark.spec.master for d in drivers)
    for worker in snapshot.workloads.values():
        if isinstance(worker.spec, WorkerSpec) and worker.goal is Goal.RUNNING:
            assert worker.spec.spark_cluster == new_world.workers[worker.cluster].spec.spark_cluster
