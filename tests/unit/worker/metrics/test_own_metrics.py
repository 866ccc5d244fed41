"""The metrics that connectors' tasks count themselves, as Prometheus reads them."""

from prometheus_client.parser import text_string_to_metric_families

from keelman.api.copy.v1.copy_run_pb2 import OwnMetric
from keelman.runtime.exposition import Exposition
from keelman.worker.metrics.metrics import TaskMetrics


def test_names_and_tags_are_made_legal_and_what_comes_to_the_same_is_told_once() -> None:
    out, metrics = Exposition(), TaskMetrics()
    odd = {"its.kind": 'a "b"\n', "task": "7", "9": "x"}
    metrics.add(
        out,
        'connector="c",task="0"',
        [
            OwnMetric(name="polls-total", description="Polls.", value=3),
            OwnMetric(name="polls.total", description="Others.", value=4),
            OwnMetric(name="polls-total", description="Polls of a kind.", value=5, tags=odd),
        ],
    )
    metrics.add(out, 'connector="d",task="0"', [OwnMetric(name="polls-total", description="Not these.", value=6)])
    text = b"".join(out.families()).decode()
    assert text.count("# TYPE") == 1
    (family,) = text_string_to_metric_families(text)
    assert (family.name, family.documentation) == ("kafka_connect_plugins_polls_total", "Polls.")
    assert [(sample.labels, sample.value) for sample in family.samples] == [
        ({"connector": "c", "task": "0"}, 3),
        ({"connector": "c", "task": "0", "its_kind": odd["its.kind"], "tag_task": "7", "tag_9": "x"}, 5),
        ({"connector": "d", "task": "0"}, 6),
    ]
