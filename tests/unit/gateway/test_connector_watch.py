"""What a watch says of connectors whose workers are asked, since nothing is reported of them."""

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED, CONNECTOR_STATE_RUNNING, Connector
from keelman.gateway.connector_watch import Asked

RUNS = Connector(worker_cluster="a", name="x", state=CONNECTOR_STATE_RUNNING)
FAILED = Connector(worker_cluster="a", name="x", state=CONNECTOR_STATE_FAILED)


def test_first_all_of_a_cluster_then_what_differs() -> None:
    asked = Asked()
    asked.ask(["a", "b"])
    first = asked.news({"a": {"x": RUNS}, "b": {}}, {})
    assert first is not None
    assert (list(first.worker_clusters), list(first.connectors), list(first.gone)) == (["a", "b"], [RUNS], [])
    assert asked.news({"a": {"x": RUNS}, "b": {}}, {}) is None
    second = asked.news({"a": {"x": FAILED}, "b": {}}, {})
    assert second is not None
    assert (list(second.worker_clusters), list(second.connectors)) == ([], [FAILED])
    last = asked.news({"a": {}, "b": {}}, {})
    assert last is not None
    assert [(one.worker_cluster, one.name) for one in last.gone] == [("a", "x")]


def test_one_that_is_reported_again_is_told_of_no_more_and_begins_anew_later() -> None:
    asked = Asked()
    asked.ask(["a"])
    asked.news({"a": {"x": RUNS}}, {})
    asked.ask([])
    assert asked.news({"a": {}}, {}) is None, "the answer came late"
    asked.ask(["a"])
    again = asked.news({"a": {"x": RUNS}}, {})
    assert again is not None
    assert list(again.worker_clusters) == ["a"]


def test_who_does_not_answer_is_told_of_once_for_a_reason() -> None:
    asked = Asked()
    asked.ask(["a"])
    first = asked.news({"a": {}}, {"a": "no answer"})
    assert first is not None
    assert dict(first.unreachable.reasons) == {"a": "no answer"}
    assert asked.news({"a": {}}, {"a": "no answer"}) is None
    again = asked.news({"a": {"x": RUNS}}, {})
    assert again is not None
    assert (again.HasField("unreachable"), dict(again.unreachable.reasons)) == (True, {})
