"""For any sequence of changes, a plan for the changed resources alone equals the plan for all resources."""

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.model.cluster import ClusterGoal, ManagedBrokers
from keelman.state.planning.draft import Limits
from keelman.state.planning.planner import make_plan
from keelman.state.planning.scope import scope_of
from keelman.state.resources.snapshot import Snapshot
from support.worlds.planner import World, changes

# So few ports that clusters wait for those of others.
LIMITS = Limits(worker_ports=range(8083, 8085), broker_ports=range(9092, 9096), spark_ports=range(7430, 7432))
NODES = {"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "10.0.0.2", "n4": "10.0.0.4"}
BROKERS = {"default": "n1", "other": "n2,n4", "outside": ""}
WORKERS = {
    "a": ("default", {"count": "2"}), "b": ("other", {"nodes": "n1,n2"}), "c": ("outside", {"count": "3"}),
    "d": ("other", {"nodes": "n3"}), "e": ("default", {"count": "1"}),
}  # fmt: skip
node, brokers, workers = (st.sampled_from(sorted(names)) for names in (NODES, BROKERS, WORKERS))
step = st.one_of(
    st.tuples(st.just("node"), node, st.sampled_from(["online", "offline", "unknown"])),
    st.tuples(st.just("address"), node, st.sampled_from(["10.0.0.1", "10.0.0.9"])),
    st.tuples(st.sampled_from(["start", "stop", "delete", "create", "grow"]), workers),
    st.tuples(st.sampled_from(["start-brokers", "stop-brokers", "move-brokers", "delete-brokers"]), brokers),
    st.tuples(st.just("obey")),
    st.tuples(st.just("report"), st.integers(0, 30), st.sampled_from(["RUNNING", "STOPPED", "FAILED", "REMOVED"])),
    st.tuples(st.just("taken"), st.integers(0, 30)),
    st.tuples(st.sampled_from(["cordon", "uncordon"]), st.sampled_from(sorted(NODES))),
)


class Watched(World):
    """Plans twice each time: for all resources, and for those that changed since the last plan."""

    def __init__(self) -> None:
        super().__init__()
        self.planned = Snapshot()

    def settle(self) -> None:
        seen = self.snapshot
        scope = scope_of(changes(self.planned, seen), seen, LIMITS.events_broker_cluster)
        plan = make_plan(seen, LIMITS)
        assert make_plan(seen, LIMITS, scope) == plan
        self.planned = seen
        self.apply(plan)


def create(watched: Watched, name: str) -> None:
    on, placement = WORKERS[name]
    if on in watched.brokers and watched.brokers[on].goal is not ClusterGoal.DELETED:
        watched.do_workers(name, on, **placement)


def world() -> Watched:
    watched = Watched()
    for name, host in NODES.items():
        watched.do_node(name, "online", host)
    for name, nodes in BROKERS.items():
        watched.do_managed(name, nodes) if nodes else watched.do_external(name, "h:1")
    for name in WORKERS:
        create(watched, name)
        watched.do_start("workers", name)
    watched.settle()
    return watched


def do(watched: Watched, words: tuple) -> None:
    match words:
        case ("node", name, state):
            watched.do_node(name, state, watched.nodes[name].host)
        case ("address", name, host):
            watched.do_node(name, "online", host)
        case ("create", name) if name not in watched.workers:
            create(watched, name)
        case ("delete", name) if name in watched.workers:
            watched.do_delete("workers", name)
        case ("start" | "stop" as verb, name) if alive(watched.workers.get(name)):
            getattr(watched, f"do_{verb}")("workers", name)
        case ("grow", name) if alive(watched.workers.get(name)) and not watched.workers[name].spec.nodes:
            spec = watched.workers[name].spec
            watched.workers[name] = dataclasses.replace(
                watched.workers[name], spec=dataclasses.replace(spec, count=spec.count + 1)
            )
        case ("start-brokers" | "stop-brokers" as verb, name) if alive(watched.brokers.get(name)):
            getattr(watched, f"do_{verb.partition('-')[0]}")("brokers", name)
        case ("move-brokers", name) if alive(watched.brokers.get(name)):
            spec = watched.brokers[name].spec
            if isinstance(spec, ManagedBrokers):
                spec = dataclasses.replace(spec, nodes=(*spec.nodes, "n3") if "n3" not in spec.nodes else spec.nodes)
                watched.brokers[name] = dataclasses.replace(watched.brokers[name], spec=spec)
        case ("delete-brokers", name) if name in watched.brokers:
            if all(c.spec.broker_cluster != name for c in watched.workers.values()):
                watched.do_delete("brokers", name)
        case ("cordon" | "uncordon" as verb, name):
            getattr(watched, f"do_{verb}")(name)
        case ("obey",):
            watched.do_obey()
        case ("report", number, state) if watched.workloads:
            watched.do_report(sorted(watched.workloads)[number % len(watched.workloads)], state)
        case ("taken", number) if watched.workloads:
            watched.do_report(sorted(watched.workloads)[number % len(watched.workloads)], "FAILED", "PORT_TAKEN")


def alive(cluster) -> bool:
    return cluster is not None and cluster.goal is not ClusterGoal.DELETED


@settings(max_examples=250, deadline=None)
@given(st.lists(st.lists(step, min_size=1, max_size=3), max_size=12))
def test_a_plan_for_what_changed_is_the_plan_for_everything(histories: list[list[tuple]]) -> None:
    new_world = world()
    for steps in histories:
        for words in steps:
            do(new_world, words)
        new_world.settle()
        new_world.settle()  # and after the plan's own changes
