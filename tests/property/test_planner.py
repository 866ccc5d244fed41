"""Whatever happens in whatever order: the planner's plans are safe, settle, and follow the last word."""

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.model.cluster import ClusterGoal, ClusterState, ManagedBrokers
from keelman.model.node import NodeState
from keelman.model.workload import Goal, SparkSpec, WorkerSpec, Workload, WorkloadKind, spark_name
from keelman.state.planning.planner import make_plan
from keelman.state.planning.scope import scope_of
from keelman.state.snapshot import BROKER_CLUSTER, NODE, WORKER_CLUSTER, WORKLOAD, Snapshot

# The planner's world is also what its transcripts are made with.
from support.planner_world import LIMITS, World

NODES = {"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "10.0.0.2"}
CLUSTERS = ["a", "b"]
node = st.sampled_from(sorted(NODES))
cluster = st.sampled_from(CLUSTERS)
step = st.one_of(
    st.tuples(st.just("node"), node, st.sampled_from(["online", "offline", "unknown"])),
    st.tuples(st.sampled_from(["start", "stop", "delete", "create"]), cluster),
    st.tuples(st.sampled_from(["start-brokers", "stop-brokers"])),
    st.tuples(st.just("obey")),
    st.tuples(st.just("fail"), st.integers(0, 30), st.sampled_from(["PORT_TAKEN", "EXITED"])),
    st.tuples(st.just("forget"), st.integers(0, 30)),
)


class Checked(World):
    """Checks each plan as it is applied."""

    def __init__(self) -> None:
        super().__init__()
        self.planned = Snapshot()

    def changes(self) -> list[tuple]:
        """What was and what is, of all that changed since it was last planned."""
        old, new = self.planned, self.snapshot
        pairs = []
        for noun in (NODE, BROKER_CLUSTER, WORKER_CLUSTER, WORKLOAD):
            before, after = old.resources(noun), new.resources(noun)
            pairs += [(before.get(n), after.get(n)) for n in before.keys() | after.keys()]
        return [pair for pair in pairs if pair[0] != pair[1]]

    def settle(self) -> None:
        before, seen = dict(self.workloads), self.snapshot
        plan = make_plan(seen, LIMITS)
        scope = scope_of(self.changes(), seen, LIMITS.events_broker_cluster)
        assert make_plan(seen, LIMITS, scope) == plan, "what has not changed is not planned in another way"
        self.planned = seen
        self.apply(plan)
        assert make_plan(self.snapshot, LIMITS).is_empty, "planning again must find nothing to do"
        for workload in plan.put:
            self.check_change(before.get(workload.name), workload)
        self.check_ports()
        self.check_sparks()

    def check_change(self, old: Workload | None, new: Workload) -> None:
        if old is None:
            assert new.generation == 1
            return
        assert new.generation == old.generation + 1, "every change is one new generation"
        if new.kind is WorkloadKind.BROKER:
            assert new.node == old.node, "brokers never move"
            if old.has_run:
                assert new.ports == old.ports, "a broker with data keeps its ports"
        if new.node != old.node:
            assert self.nodes[old.node].state is NodeState.OFFLINE, "nothing leaves a node that is not offline"
            assert self.nodes[new.node].state is NodeState.ONLINE
            assert not self.workers[new.cluster].spec.nodes, "pinned workers never move"

    def check_ports(self) -> None:
        ranges = {
            WorkloadKind.BROKER: LIMITS.broker_ports,
            WorkloadKind.WORKER: LIMITS.worker_ports,
            WorkloadKind.SPARK: LIMITS.spark_ports,
        }
        taken = [(w.spec.host, p) for w in self.workloads.values() for p in w.ports]
        assert len(taken) == len(set(taken)), f"a port is given twice: {sorted(taken)}"
        assert all(p in ranges[w.kind] for w in self.workloads.values() for p in w.ports)

    def check_sparks(self) -> None:
        for workload in self.workloads.values():
            if isinstance(workload.spec, WorkerSpec) and workload.goal is Goal.RUNNING:
                spark = self.workloads[spark_name(workload.node)]
                assert isinstance(spark.spec, SparkSpec)
                assert spark.goal is Goal.RUNNING, "a running worker has a running Spark service"
                assert workload.spec.spark_address == spark.address


def world() -> Checked:
    made = Checked()
    for name, host in NODES.items():
        made.do_node(name, "online", host)
    made.do_managed("default", "n1,n3")
    create(made, "a")
    create(made, "b")
    made.settle()
    return made


def create(made: Checked, name: str) -> None:
    if name == "a":
        made.do_workers("a", "default", count="3")
    else:
        made.do_workers("b", "default", nodes="n1,n2")


def do(made: Checked, words: tuple) -> None:
    match words:
        case ("node", name, state):
            made.do_node(name, state, NODES[name])
        case ("create", name) if name not in made.workers:
            create(made, name)
        case ("start" | "stop" as verb, name) if (
            name in made.workers and made.workers[name].goal is not ClusterGoal.DELETED
        ):
            getattr(made, f"do_{verb}")("workers", name)
        case ("delete", name) if name in made.workers:
            made.do_delete("workers", name)
        case ("start-brokers",):
            made.do_start("brokers", "default")
        case ("stop-brokers",):
            made.do_stop("brokers", "default")
        case ("obey",):
            made.do_obey()
        case ("fail", number, reason) if made.workloads:
            made.do_report(sorted(made.workloads)[number % len(made.workloads)], "FAILED", reason)
        case ("forget", number) if made.workloads:
            name = sorted(made.workloads)[number % len(made.workloads)]
            made.do_report(name, "STOPPED")


@settings(max_examples=150, deadline=None)
@given(st.lists(step, max_size=25))
def test_every_plan_is_safe(steps: list[tuple]) -> None:
    made = world()
    for words in steps:
        do(made, words)
        made.settle()


@settings(max_examples=100, deadline=None)
@given(st.lists(step, max_size=20))
def test_when_all_nodes_are_back_the_last_word_comes_true(steps: list[tuple]) -> None:
    made = world()
    for words in steps:
        if words[0] != "fail" or words[2] != "PORT_TAKEN":  # taken ports may leave none to run on
            do(made, words)
            made.settle()
    wanted = {n: c.goal for n, c in made.workers.items()}
    made.do_start("brokers", "default")
    for name, host in NODES.items():
        made.do_node(name, "online", host)
    for _ in range(5):
        made.settle()
        made.do_obey()
    made.settle()
    assert {n for n, g in wanted.items() if g is not ClusterGoal.DELETED} == set(made.workers)
    for name, workers in made.workers.items():
        status = made.worker_status(name)
        expected = ClusterState.RUNNING if wanted[name] is ClusterGoal.RUNNING else ClusterState.STOPPED
        assert status.state is expected, status
        assert status.ready_workers == (workers.spec.wanted_workers if expected is ClusterState.RUNNING else 0)
    carried = {w.node for w in made.workloads.values() if w.kind is WorkloadKind.WORKER}
    assert {w.node for w in made.workloads.values() if w.kind is WorkloadKind.SPARK} == carried
    assert isinstance(made.brokers["default"].spec, ManagedBrokers)
