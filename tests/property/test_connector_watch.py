"""For any reports, and wherever a watch of connectors ends and resumes, its view equals the lists."""

from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.api.connect.v1 import connector_pb2 as pb
from keelman.api.event.v1.report_pb2 import ConnectorReport, ConnectorsReport
from keelman.rpc.watching import KnownConnectors
from keelman.state.reports import connector_feed
from keelman.state.reports.connector_reports import ConnectorReports

CLUSTERS, NAMES = ("a", "b"), ("p", "q", "r", "s")
STATES = (pb.CONNECTOR_STATE_RUNNING, pb.CONNECTOR_STATE_FAILED)
cluster, name = st.sampled_from(CLUSTERS), st.sampled_from(NAMES)
step = st.one_of(
    st.tuples(st.just("tell"), cluster, name, st.sampled_from(STATES)),
    st.tuples(st.just("next round"), cluster, st.lists(name, unique=True), st.sampled_from(STATES)),
    st.tuples(st.just("drop"), cluster, name),
    st.tuples(st.just("show"), st.sets(cluster)),
    st.tuples(st.just("silence"), cluster),
    st.tuples(st.just("sweep"), cluster),
    st.tuples(st.just("look"), st.integers(0, 2), st.booleans()),
)


class World:
    """The reports, the views of watches, and the expected views."""

    def __init__(self) -> None:
        self.now, self.rounds = 0.0, dict.fromkeys(CLUSTERS, 0)
        self.reports = ConnectorReports(lambda: self.now)
        self.running: set[str] = set(CLUSTERS)
        self.watches = [("", "", KnownConnectors()), ("a", "", KnownConnectors()), ("", "p", KnownConnectors())]

    def tell(self, of: str, which: str, state: Any, *, next_: int = 0) -> None:
        connector = pb.Connector(worker_cluster=of, name=which, state=state)
        report = ConnectorReport(connector=connector, round=str(self.rounds[of] + next_))
        self.reports.fold(report, f"{of}/{which}")
        self.reports.hear(of)

    def do(self, *what: Any) -> None:
        match what:
            case "tell", of, which, state:
                self.tell(of, which, state)
            case "next round", of, those, state:
                for item in those:
                    self.tell(of, item, state, next_=1)
                self.rounds[of] += 1
                self.reports.close(ConnectorsReport(worker_cluster=of, round=str(self.rounds[of])), of)
                self.reports.hear(of)
            case "drop", of, which:
                self.reports.drop(f"{of}/{which}")
            case "show", running:
                self.running = running
            case "silence", of:
                self.now += 60
                for item in CLUSTERS:
                    if item != of:
                        self.reports.hear(item)
            case "sweep", of:
                self.reports.sweep([of])
                self.running = self.running - {of}
            case "look", number, is_cut:
                self.look(number, is_cut=is_cut)

    def look(self, number: int, *, is_cut: bool) -> None:
        self.reports.show(sorted(self.running))
        of, which, present = self.watches[number]
        parts = list(self.reports.feed.after(present.begin(), of, which).parts())
        if is_cut and len(parts) > 1:
            for part in parts[:-1]:
                assert present.fold(part) is None
            return
        before = dict(present.connectors)
        for part in parts:
            changed = present.fold(part)
        assert changed is not None
        assert all(before.get(key) != item for key, item in changed), "nothing comes that is no change"
        reported = [item for item in sorted(self.running) if self.reports.reported(item)]
        shown, _ = self.reports.page(reported, pb.CONNECTOR_STATE_UNSPECIFIED, 1000, "")
        expected = [item for item in shown if of in ("", item.worker_cluster) and which in ("", item.name)]
        assert sorted(present.connectors.values(), key=lambda c: (c.worker_cluster, c.name)) == expected


@settings(max_examples=300, deadline=None)
@given(steps=st.lists(step, max_size=25), most_gone=st.sampled_from((1, 1000)))
def test_a_watch_knows_what_lists_show(steps: list[Any], most_gone: int) -> None:
    world = World()
    with mock.patch.multiple(connector_feed, PART=1, MAX_GONE=most_gone):
        for single_step in steps:
            world.do(*single_step)
        for number in range(len(world.watches)):
            world.look(number, is_cut=False)
            assert not world.reports.feed.after(world.watches[number][2].revision, *world.watches[number][:2])


def test_what_another_process_knew_comes_anew() -> None:
    single_world, other = World(), World()
    for world in (single_world, other):
        world.do("next round", "a", ["p"], STATES[0])
        world.look(0, is_cut=False)
    revision = single_world.watches[0][2].revision
    assert other.reports.feed.after(revision).snapshot
    assert not single_world.reports.feed.after(revision).snapshot


def test_it_costs_what_has_changed() -> None:
    world = World()
    world.do("next round", "a", [f"c{number}" for number in range(900)], STATES[0])
    world.look(0, is_cut=False)
    revision = world.watches[0][2].revision
    world.do("tell", "a", "c7", STATES[1])
    world.do("drop", "a", "c9")
    news = world.reports.feed.after(revision)
    assert [connector.name for connector in news.connectors] == ["c7"]
    assert [item.name for item in news.gone] == ["c9"]
