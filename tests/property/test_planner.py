"""For any sequence of events, the planner's plans are safe, settle, and follow the latest specs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.model.cluster import ClusterGoal, ClusterState, ManagedBrokers, WorkerCluster
from keelman.model.node import NodeState
from keelman.model.plan import PlanAction
from keelman.model.workload import Goal, ProcessState, SparkSpec, WorkerSpec, Workload, WorkloadKind, spark_of
from keelman.state.clusters.status import worker_cluster_status
from keelman.state.planning.draft import ports_taken
from keelman.state.planning.places import has_labels
from keelman.state.planning.planner import Plan
from keelman.state.planning.scope import scope_of
from keelman.state.planning.sparks import spark_address
from keelman.state.resources.snapshot import Snapshot

# The planner's transcripts use the same world.
from support.worlds.planner import LIMITS, World, changes

NODES = {"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "10.0.0.2", "n4": "10.0.0.3"}
CLUSTERS = ["a", "b"]
FIXED = "9500"
node = st.sampled_from(sorted(NODES))
cluster = st.sampled_from(CLUSTERS)
change = st.one_of(
    st.fixed_dictionaries({"count": st.sampled_from(["1", "2", "3"])}),
    st.fixed_dictionaries({"nodes": st.lists(node, min_size=1, max_size=3, unique=True).map(",".join)}),
    st.fixed_dictionaries({"x": st.sampled_from(["1", "2", "3"])}),
    st.fixed_dictionaries({"select": st.sampled_from(["", "disk:ssd"])}),
    st.fixed_dictionaries({"reserved": st.sampled_from(["", "9600"])}),
    st.fixed_dictionaries({"cpus": st.sampled_from(["0", "1"])}),
    st.fixed_dictionaries({"description": st.just("new")}),
)
step = st.one_of(
    st.tuples(st.just("node"), node, st.sampled_from(["online", "offline", "unknown"])),
    st.tuples(st.sampled_from(["cordon", "drain", "uncordon", "label", "unlabel"]), node),
    st.tuples(st.sampled_from(["start", "stop", "delete", "create", "restart", "kill"]), cluster),
    st.tuples(st.just("update"), cluster, change),
    st.tuples(st.just("roll"), cluster, st.sampled_from(["1", "2", "3"])),
    st.tuples(st.just("port"), st.booleans()),
    st.tuples(st.sampled_from(["start-brokers", "stop-brokers"])),
    st.tuples(st.just("tenants"), node, st.sampled_from(["on", "off"])),
    st.tuples(st.just("linger"), node),
    st.tuples(st.just("linger")),
    st.tuples(st.just("obey")),
    st.tuples(st.just("obey-one"), st.integers(0, 30)),
    st.tuples(st.just("fail"), st.integers(0, 30), st.sampled_from(["PORT_TAKEN", "EXITED"])),
    st.tuples(st.just("forget"), st.integers(0, 30)),
)


class Checked(World):
    """Checks each plan when it is applied."""

    def __init__(self) -> None:
        super().__init__()
        self.planned = Snapshot()
        self.over: set[str] = set()
        """Nodes whose grace for a Spark service has ended since the last plan."""

    def do_linger(self, *nodes: str) -> None:
        self.over |= {spark.partition("/")[2] for spark in self.lingering}
        super().do_linger(*nodes)

    def settle(self) -> None:
        before, clusters, seen = dict(self.workloads), dict(self.workers), self.snapshot
        plan = self.plan()
        scope = scope_of(changes(self.planned, seen), seen, LIMITS.events_broker_cluster)
        scope.nodes |= self.over
        self.over.clear()
        assert self.plan(scope) == plan, "an unchanged workload keeps its plan"
        self.planned = seen
        self.apply(plan)
        assert self.plan().is_empty, "planning again must find nothing to do"
        for workload in plan.put:
            self.check_change(before.get(workload.name), workload)
        self.check_told(plan, before)
        for cluster in clusters.values():
            self.check_one_by_one(cluster, before)
        self.check_ports()
        self.check_sparks()

    def check_change(self, old: Workload | None, new: Workload) -> None:
        if old is None:
            assert new.generation == 1
            if isinstance(new.spec, WorkerSpec):
                self.check_new_place(new)
            if new.kind is WorkloadKind.BROKER:
                assert not self.nodes[new.node].spec.cordoned, "nothing new comes to such a node"
            return
        if (old.generation, old.node, old.goal) == (new.generation, new.node, new.goal):
            assert old.limits == new.limits, "what an agent does not hear of is only noted"
            return
        assert new.generation == old.generation + 1, "every change is one new generation"
        if new.kind is WorkloadKind.BROKER:
            assert new.node == old.node, "brokers never move"
            if old.has_run:
                assert new.ports == old.ports, "a broker with data keeps its ports"
        if new.node != old.node:
            left = self.nodes[old.node]
            selector = self.workers[new.cluster].spec.node_selector
            assert left.state is NodeState.OFFLINE or left.spec.draining or not has_labels(left, selector), (
                "nothing leaves a node where it may be"
            )
            assert not self.workers[new.cluster].spec.nodes, "pinned workers never move"
            self.check_new_place(new)

    def check_new_place(self, worker: Workload) -> None:
        there, spec = self.nodes[worker.node], self.workers[worker.cluster].spec
        assert not there.spec.cordoned, "nothing new comes to such a node"
        assert there.state is not NodeState.EXPECTED
        if not spec.nodes:
            assert there.takes_new
            assert has_labels(there, spec.node_selector)
        else:
            assert worker.node in spec.nodes

    def check_told(self, plan: Plan, before: dict[str, Workload]) -> None:
        """Each change has its reason, and each new generation is a change."""
        told = {c.workload: c for c in plan.changes}
        assert all(c.reason for c in plan.changes)
        new = {w.name for w in plan.put if w.name not in before or before[w.name].generation != w.generation}
        assert told.keys() == new | set(plan.drop)
        assert {c.workload for c in plan.changes if c.action is PlanAction.FORGET} == set(plan.drop)

    def check_one_by_one(self, cluster: WorkerCluster, before: dict[str, Workload]) -> None:
        """Of running workers at most one is ended for a new specification, and only if all others follow theirs."""
        if cluster.goal is not ClusterGoal.RUNNING:
            return
        ended, others = [], []
        for old in before.values():
            new = self.workloads.get(old.name)
            if old.cluster != cluster.name or old.kind is not WorkloadKind.WORKER or new is None:
                continue
            if new.goal is not Goal.RUNNING or self.nodes[old.node].state is NodeState.OFFLINE:
                continue
            runs = old.goal is Goal.RUNNING and old.is_in(ProcessState.RUNNING)
            assert isinstance(old.spec, WorkerSpec)
            assert isinstance(new.spec, WorkerSpec)
            follows = (old.spec.spark_address, old.spec.host) != (new.spec.spark_address, new.spec.host)
            if runs and old.generation != new.generation and (old.node != new.node or not follows):
                ended.append(new)
            elif not follows and not ports_taken(new):  # a worker without a free port blocks no other
                others.append(old)
        assert len(ended) <= 1, "one by one"
        if ended:
            moves, spec = ended[0].node != before[ended[0].name].node, ended[0].spec
            must = [o for o in others if moves or (isinstance(o.spec, WorkerSpec) and _as_wanted(o.spec, spec))]
            assert all(o.is_in(ProcessState.RUNNING) for o in must), "each runs before the next"

    def check_ports(self) -> None:
        ranges = {
            WorkloadKind.BROKER: LIMITS.broker_ports,
            WorkloadKind.WORKER: LIMITS.worker_ports,
            WorkloadKind.SPARK: LIMITS.spark_ports,
        }
        taken = [(w.spec.host, p) for w in self.workloads.values() for p in w.ports]
        assert len(taken) == len(set(taken)), f"a port is given twice: {sorted(taken)}"
        named = {int(FIXED), 9600}
        assert all(p in ranges[w.kind] or p in named for w in self.workloads.values() for p in w.ports)

    def check_sparks(self) -> None:
        for workload in self.workloads.values():
            if isinstance(workload.spec, WorkerSpec) and workload.goal is Goal.RUNNING:
                spark = self.workloads[spark_of(workload)]
                assert isinstance(spark.spec, SparkSpec)
                assert spark.goal is Goal.RUNNING, "a running worker has a running Spark service"
                assert spark.spec.tenant == workload.spec.tenant
                assert workload.spec.spark_address == spark_address(spark)


def _as_wanted(other: WorkerSpec, new: WorkerSpec) -> bool:
    return (other.properties.get("x"), other.restart, other.metrics_port) == (
        new.properties.get("x"), new.restart, new.metrics_port,
    )  # fmt: skip


def world(*, runs: bool = False) -> Checked:
    checked = Checked()
    for name, host in NODES.items():
        checked.do_node(name, "online", host)
    checked.do_managed("default", "n1,n3")
    create(checked, "a")
    create(checked, "b")
    checked.settle()
    for name in CLUSTERS if runs else ():
        checked.do_start("workers", name)
        checked.settle()
        checked.do_obey()
        checked.settle()
    return checked


def create(checked: Checked, name: str) -> None:
    if name == "a":
        checked.do_workers("a", "default", count="3")
    else:
        checked.do_workers("b", "default", nodes="n1,n2")


def do(checked: Checked, words: tuple) -> None:
    match words:
        case ("node", name, state):
            checked.do_node(name, state, NODES[name])
        case ("cordon" | "drain" | "uncordon" as verb, name):
            getattr(checked, f"do_{verb}")(name)
        case ("label", name):
            checked.do_label(name, disk="ssd")
        case ("unlabel", name):
            checked.do_label(name)
        case ("create", name) if name not in checked.workers:
            create(checked, name)
        case ("start" | "stop" as verb, name) if alive(checked, name):
            getattr(checked, f"do_{verb}")("workers", name)
        case ("restart" | "kill" as verb, name) if alive(checked, name):
            getattr(checked, f"do_{verb}")(name)
        case ("update", name, fields) if alive(checked, name):
            if "reserved" not in fields or name == "a":  # two clusters with the same port are refused before this
                checked.do_update(name, **fields)
        case ("roll", name, value) if alive(checked, name):
            checked.do_update(name, x=value)
        case ("port", fixed) if alive(checked, "a"):
            checked.do_update("a", metrics_port=FIXED if fixed else "0")
        case ("delete", name) if name in checked.workers:
            checked.do_delete("workers", name)
        case ("linger", *nodes):
            checked.do_linger(*nodes)
        case ("start-brokers",):
            checked.do_start("brokers", "default")
        case ("stop-brokers",):
            checked.do_stop("brokers", "default")
        case ("obey",):
            checked.do_obey()
        case ("obey-one", number) if checked.workloads:
            checked.do_obey(sorted(checked.workloads)[number % len(checked.workloads)])
        case ("fail", number, reason) if checked.workloads:
            checked.do_report(sorted(checked.workloads)[number % len(checked.workloads)], "FAILED", reason)
        case ("forget", number) if checked.workloads:
            name = sorted(checked.workloads)[number % len(checked.workloads)]
            checked.do_report(name, "STOPPED")


def alive(checked: Checked, name: str) -> bool:
    return name in checked.workers and checked.workers[name].goal is not ClusterGoal.DELETED


@settings(max_examples=150, deadline=None)
@given(st.booleans(), st.lists(step, max_size=25))
def test_every_plan_is_safe(runs: bool, steps: list[tuple]) -> None:
    new_world = world(runs=runs)
    for words in steps:
        do(new_world, words)
        new_world.settle()


@settings(max_examples=100, deadline=None)
@given(st.booleans(), st.lists(step, max_size=20))
def test_when_all_nodes_are_back_the_last_word_comes_true(runs: bool, steps: list[tuple]) -> None:
    new_world = world(runs=runs)
    for words in steps:
        # Taken ports may leave no port to run on, as may named ports where hosts are few.
        few = words[0] == "port" or (words[0] == "update" and "reserved" in words[2])
        if words[-1] != "PORT_TAKEN" and not few:
            do(new_world, words)
            new_world.settle()
    goals = {n: c.goal for n, c in new_world.workers.items()}
    new_world.do_start("brokers", "default")
    new_world.do_linger()
    for name, host in NODES.items():
        new_world.do_node(name, "online", host)
        new_world.do_uncordon(name)
        new_world.do_label(name, disk="ssd")
    for _ in range(12):
        new_world.settle()
        new_world.do_obey()
    new_world.settle()
    assert {n for n, g in goals.items() if g is not ClusterGoal.DELETED} == set(new_world.workers)
    for name, workers in new_world.workers.items():
        status = new_world.worker_status(name)
        expected = ClusterState.RUNNING if goals[name] is ClusterGoal.RUNNING else ClusterState.STOPPED
        assert status.state is expected, status
        assert status.rollout is None, status
        assert status.ready_workers == (workers.wanted_workers if expected is ClusterState.RUNNING else 0)
        check_specs(new_world, workers)
    carried = {w.node for w in new_world.workloads.values() if w.kind is WorkloadKind.WORKER}
    assert {w.node for w in new_world.workloads.values() if w.kind is WorkloadKind.SPARK} == carried
    assert isinstance(new_world.brokers["default"].spec, ManagedBrokers)


def check_specs(checked: Checked, cluster: WorkerCluster) -> None:
    """Every running worker has the specification of its cluster."""
    for worker in checked.snapshot.workloads_in(WorkloadKind.WORKER, cluster.name):
        if worker.goal is Goal.RUNNING:
            assert isinstance(worker.spec, WorkerSpec)
            assert worker.spec.properties.get("x") == cluster.spec.properties.get("x")
            assert (worker.limits, worker.spec.restart) == (cluster.spec.limits, cluster.restart)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(node, min_size=1, unique=True), min_size=1, max_size=6))
def test_a_list_of_nodes_that_changes_starts_nobody_again(lists: list[list[str]]) -> None:
    new_world = world()
    new_world.do_start("workers", "b")
    for nodes in [["n1", "n2"], *lists]:
        before = {
            w.node: w for w in new_world.snapshot.workloads_in(WorkloadKind.WORKER, "b") if w.goal is Goal.RUNNING
        }
        new_world.do_update("b", nodes=",".join(nodes))
        new_world.settle()
        after = {w.node: w for w in new_world.snapshot.workloads_in(WorkloadKind.WORKER, "b") if w.goal is Goal.RUNNING}
        assert set(after) == set(nodes)
        assert all(after[n] == before[n] for n in nodes if n in before), "who stays is not touched"
        for _ in range(4):
            new_world.do_obey()
            new_world.settle()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.lists(st.integers(1, 8), min_size=4, max_size=4))
def test_a_count_that_changes_starts_nobody_again_and_spreads(counts: list[int], cpus: list[int]) -> None:
    checked = Checked()
    for number, have in enumerate(cpus):
        checked.do_node(f"n{number}", "online", f"10.0.1.{number}", cpus=str(have))
    checked.do_external("ext", "kafka:9092")
    checked.do_workers("a", "ext", count="1")
    checked.do_start("workers", "a")
    for count in counts:
        before = checked.snapshot.workloads_in(WorkloadKind.WORKER, "a")
        checked.do_update("a", count=str(count))
        checked.settle()
        after = [w for w in checked.snapshot.workloads_in(WorkloadKind.WORKER, "a") if w.goal is Goal.RUNNING]
        assert len(after) == count
        assert sum(w in before for w in after) == min(len(before), count), "who stays is not touched"
        assert len({w.node for w in after}) == count, "each on a node of its own"
        for _ in range(4):
            checked.do_obey()
            checked.settle()
    assert worker_cluster_status(checked.workers["a"], checked.snapshot).state is ClusterState.RUNNING
