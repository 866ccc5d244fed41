"""The connectors in a list are those of the last complete round, whatever the order and repetition of reports."""

from keelman.api.connect.v1.connector_pb2 import (
    CONNECTOR_STATE_FAILED,
    CONNECTOR_STATE_RUNNING,
    CONNECTOR_STATE_UNSPECIFIED,
    Connector,
    ConnectorTask,
)
from keelman.api.event.v1.report_pb2 import ConnectorReport, ConnectorsReport
from keelman.state.reports.connector_reports import SILENT_SECONDS, ConnectorReports

ANY = CONNECTOR_STATE_UNSPECIFIED


class Told:
    """Reports as a leader sends them, and a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.reports = ConnectorReports(lambda: self.now)

    def tell(self, round_: str, name: str, cluster: str = "demo", **more: object) -> None:
        connector = Connector(worker_cluster=cluster, name=name, **more)
        self.reports.fold(ConnectorReport(connector=connector, round=round_), f"{cluster}/{name}")

    def close(self, round_: str, cluster: str = "demo") -> None:
        self.reports.close(ConnectorsReport(worker_cluster=cluster, round=round_), cluster)
        self.reports.hear(cluster)

    def names(self, *clusters: str, state: int = ANY) -> list[str]:
        return [c.name for c in self.reports.page(clusters or ("demo",), state, 1000, "")[0]]


def test_a_round_counts_once_it_is_whole() -> None:
    teller = Told()
    teller.tell("1", "b")
    assert (teller.names(), teller.reports.reported("demo")) == ([], False)
    teller.tell("1", "a")
    teller.close("1")
    teller.tell("1", "c")
    assert (teller.names(), teller.reports.reported("demo")) == (["a", "b", "c"], True)
    teller.tell("2", "a")
    assert teller.names() == ["a", "b", "c"]
    teller.close("2")
    assert teller.names() == ["a"]
    teller.close("3")
    assert teller.names() == []


def test_a_worker_that_led_before_says_nothing_any_more() -> None:
    told = Told()
    told.tell("1", "a", state=CONNECTOR_STATE_RUNNING)
    told.close("1")
    told.tell("2", "a", state=CONNECTOR_STATE_FAILED)
    told.close("2")
    told.tell("1", "a", state=CONNECTOR_STATE_RUNNING)
    assert told.names(state=CONNECTOR_STATE_FAILED) == ["a"]


def test_a_tombstone_takes_a_connector_out() -> None:
    told = Told()
    for name in ("a", "with/slash"):
        told.tell("1", name)
    told.close("1")
    told.reports.drop("demo/with/slash")
    told.reports.drop("elsewhere/x")
    assert told.names() == ["a"]


def test_what_no_round_has_is_swept_at_the_second_sweep() -> None:
    told = Told()
    told.tell("1", "a")
    told.tell("1", "b")
    told.close("1")
    told.tell("2", "a")
    told.close("2")
    assert told.reports.sweep(()) == []
    told.tell("3", "b")
    told.close("3")
    assert told.reports.sweep(()) == []  # now a is in no round
    assert told.reports.sweep(()) == ["demo/a"]
    told.reports.drop("demo/a")
    assert told.reports.sweep(()) == []


def test_a_worker_cluster_that_is_gone_is_swept_whole() -> None:
    told = Told()
    told.tell("1", "a")
    told.tell("1", "x", "foreign")
    told.close("1")
    told.close("1", "foreign")
    assert told.reports.sweep(()) == []
    assert told.reports.sweep({"demo"}) == ["demo", "demo/a"]
    assert told.names("foreign") == ["x"]
    assert not told.reports.reported("demo")


def test_workers_that_are_silent_have_to_be_asked() -> None:
    told = Told()
    told.close("1")
    told.now += SILENT_SECONDS
    assert told.reports.reported("demo")
    told.now += 1
    assert not told.reports.reported("demo")


def test_pages_go_over_worker_clusters() -> None:
    told = Told()
    tasks = [ConnectorTask(task=0, state=CONNECTOR_STATE_FAILED)]
    for cluster in ("one", "two"):
        for number in range(5):
            told.tell("1", f"c-{number}", cluster, tasks=tasks if number % 2 else [])
        told.close("1", cluster)
    for state, expected in ((ANY, 10), (CONNECTOR_STATE_FAILED, 4)):
        seen, token = [], ""
        while True:
            part, token = told.reports.page(["one", "two"], state, 3, token)
            seen += [(c.worker_cluster, c.name) for c in part]
            if not token:
                break
        assert len(seen) == expected
        assert seen == sorted({*seen})
