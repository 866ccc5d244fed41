"""A worker's metrics: the counts from updates, and the text that Prometheus reads."""

from __future__ import annotations

import re
import time

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from prometheus_client.parser import text_string_to_metric_families

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.gateway import metrics as gateway_metrics
from keelman.gateway.worker_figures import merged
from keelman.model.work import Work
from keelman.rpc.times import to_duration
from keelman.runtime.exposition import COUNTER, GAUGE, Exposition, Family, escaped, labels_of
from keelman.worker.metrics import connector_figures, metric_names
from keelman.worker.storage import status_state as states
from keelman.worker.tasks.meters import Meter, Meters
from support.places import ROOT

PAGE = ROOT / "docs" / "metrics.md"


def update(
    uid: str, records: int, lag: int = 0, *, state: int = copy.COPY_RUN_STATE_RUNNING, **more: float
) -> RunUpdate:
    """An update of a copy run."""
    progress = copy.CopyProgress(
        records=records, bytes=10 * records, lag=lag, lag_unit=copy.LAG_UNIT_RECORDS, commit_time=Timestamp(seconds=5)
    )
    progress.MergeFrom(copy.CopyProgress(**more))  # type: ignore[arg-type]
    return RunUpdate(run_uid=uid, state=state, progress=progress)  # type: ignore[arg-type]


def test_totals_go_on_over_copy_runs() -> None:
    meter = Meter()
    meter.note(RunUpdate(run_uid="a", state=copy.COPY_RUN_STATE_FENCED), 1)
    meter.note(update("a", 10, errors=2), 1)
    meter.note(update("a", 25, errors=3), 2)
    meter.note(update("a", 30, state=copy.COPY_RUN_STATE_FAILED), 3)
    assert not meter.live
    meter.note(RunUpdate(run_uid="b", state=copy.COPY_RUN_STATE_FENCED), 4)
    meter.note(update("b", 5), 4)
    assert (meter.records, meter.bytes, meter.errors) == (35, 350, 3)
    assert (meter.runs, meter.failures, meter.commit_ms) == (2, 1, 5000)
    meter.note(RunUpdate(run_uid="b", state=copy.COPY_RUN_STATE_ENDED), 5)
    assert (meter.records, meter.failures) == (35, 1)


def test_what_is_set_aside_is_that_of_the_copy_runs_there_are() -> None:
    meter = Meter()
    meter.note(update("a", 1, set_aside={"t": 2, "u": 1}), 1)  # type: ignore[arg-type]
    meter.note(update("b", 1, set_aside={"t": 1}), 1)  # type: ignore[arg-type]
    assert meter.set_aside() == {"t": 3, "u": 1}
    meter.note(update("a", 2), 2)
    meter.note(update("b", 1, state=copy.COPY_RUN_STATE_ENDED), 2)
    assert meter.set_aside() == {}


def test_what_went_wrong_is_counted_over_copy_runs() -> None:
    meter = Meter()
    for uid, failures in (("a", 2), ("a", 5), ("b", 1)):
        bad = copy.BadRecords(failures=failures, dead_letters=1, last_time=Timestamp(seconds=failures))
        meter.note(update(uid, 1, bad_records=bad), 1)  # type: ignore[arg-type]
    assert (meter.bad.failures, meter.bad.dead_letters, meter.bad.last_time.seconds) == (6, 2, 1)


def test_lag_in_seconds_counts_from_when_nothing_was_left() -> None:
    meter = Meter()
    assert meter.lag_seconds(50) == 0
    meter.note(update("a", 1, lag=0), 100)
    meter.note(update("a", 1, lag=7, remaining_time=to_duration(3.5), records_per_second=2), 101)
    meter.note(update("a", 2, lag=900), 110)
    assert meter.lag(copy.LAG_UNIT_RECORDS) == 900
    assert meter.lag(copy.LAG_UNIT_BYTES) == 0
    assert meter.lag_seconds(110) == 10
    assert meter.seconds_left() == -1
    meter.note(update("part", 2, lag=100, remaining_time=to_duration(9)), 111)
    assert meter.lag(copy.LAG_UNIT_RECORDS) == 1000
    meter.note(update("a", 3, lag=0, remaining_time=to_duration(0), records_per_second=2), 112)
    assert meter.lag_seconds(120) == 20
    meter.note(update("part", 3, lag=0, remaining_time=to_duration(0), records_per_second=1.5), 121)
    assert meter.lag_seconds(130) == 0
    assert meter.rates() == (3.5, 0)
    assert meter.seconds_left() == 0
    behind = Meter()  # it has not been level since this worker has it
    behind.note(update("a", 1, lag=7), 100)
    behind.note(update("a", 2, lag=6), 104)
    assert behind.lag_seconds(110) == 10


def test_what_a_copy_run_left_is_lag_until_another_tells() -> None:
    meter = Meter()
    assert not meter.measured
    meter.note(update("a", 1, lag=0), 100)
    meter.note(update("a", 2, lag=30), 101)
    meter.note(RunUpdate(run_uid="a", state=copy.COPY_RUN_STATE_FAILED), 102)
    assert meter.measured
    assert (meter.lag(copy.LAG_UNIT_RECORDS), meter.lag_seconds(400)) == (30, 300)
    meter.note(RunUpdate(run_uid="b", state=copy.COPY_RUN_STATE_FENCED), 401)
    assert meter.lag(copy.LAG_UNIT_RECORDS) == 30
    meter.note(update("b", 30, lag=0), 402)
    meter.note(RunUpdate(run_uid="b", state=copy.COPY_RUN_STATE_ENDED), 403)
    assert (meter.lag(copy.LAG_UNIT_RECORDS), meter.lag_seconds(500)) == (0, 0)


def test_starts_that_succeed_and_fail_are_counted() -> None:
    meters, task, connector = Meters(), Work("x", 0), Work("x")
    for state in (states.UNASSIGNED, states.RUNNING, states.RUNNING, states.RESTARTING, states.RUNNING):
        meters.count_state(task, state)
    for state in (states.RESTARTING, states.FAILED, states.FAILED):
        meters.count_state(task, state)
    meters.count_state(connector, states.RUNNING)
    meters.count_state(connector, states.FAILED)
    assert (meters.started, meters.failed) == ({True: 2, False: 1}, {True: 1, False: 1})
    meters.note(task, update("a", 1))
    meters.keep([Work("y", 0)])
    assert meters.find(task) is None


def test_prometheus_reads_what_is_written() -> None:
    counter, gauge = Family("a_total", COUNTER, "Of\nall."), Family("b", GAUGE, "One.")
    out = Exposition()
    odd = 'x"y\\z\nü '
    out.add(counter, 12, labels_of({"connector": odd, "task": "0"}))
    out.add(gauge, 0.5)
    out.add(counter, 1 << 60, f'connector="{escaped("plain")}"')
    text = b"".join(out.families()).decode()
    families = {f.name: f for f in text_string_to_metric_families(text)}
    first, second = families["a"].samples
    assert (first.name, first.labels, first.value) == ("a_total", {"connector": odd, "task": "0"}, 12)
    assert (second.labels, second.value) == ({"connector": "plain"}, 1 << 60)
    assert [s.value for s in families["b"].samples] == [0.5]
    assert families["a"].type == "counter"


def test_writing_ten_thousand_connectors_is_cheap() -> None:
    out, begun = Exposition(), time.process_time()
    for number in range(10_000):
        labels = f'connector="{escaped(f"connector-{number}")}",task="0"'
        for family in (metric_names.TASK_STATE, metric_names.RUNS, metric_names.BYTES, metric_names.LAG_RECORDS) * 3:
            out.add(family, number, labels)
    assert sum(map(len, out.families())) > 5_000_000
    assert time.process_time() - begun < 2.0  # 0.1 s on a quiet machine; prometheus_client takes 1.7 s


def _families() -> list[Family]:
    modules = (metric_names, connector_figures, gateway_metrics)
    actual_modules = [family for module in modules for family in vars(module).values() if isinstance(family, Family)]
    return [
        *actual_modules,
        *metric_names.STARTS.values(),
        *metric_names.TASKS_OF.values(),
        *metric_names.BAD_RECORDS.values(),
    ]


def test_names_are_legal_and_each_is_in_the_page() -> None:
    page = PAGE.read_text()
    names = [family.name for family in _families()]
    assert len(set(names)) == len(names)
    for family in _families():
        assert re.fullmatch(r"[a-z_]+" if family not in connector_figures.FAMILIES else r"([A-Z][a-z]+)+", family.name)
        assert f"`{family.name}`" in page, f"docs/metrics.md does not name {family.name}"
    documented = set(re.findall(r"`((?:keelman|kafka_connect)_[a-z_]+)`", page))
    assert documented <= set(names), documented - set(names)


@pytest.mark.parametrize("family", _families(), ids=lambda value: value.name)
def test_counters_end_in_total(family: Family) -> None:
    of_gauges = "connector_total_task_count"
    assert (family.kind == COUNTER) == family.name.endswith("_total") or family.name.endswith(of_gauges)


# The names in the description of the managed API.
MANAGED = [
    "CpuUtilization",
    "ErroredTaskCount",
    "MemoryUtilization",
    "RebalanceCompletedTotal",
    "RebalanceTimeAvg",
    "RebalanceTimeMax",
    "RebalanceTimeSinceLast",
    "RunningTaskCount",
    "SinkRecordReadRate",
    "SinkRecordSendRate",
    "SourceRecordPollRate",
    "SourceRecordWriteRate",
    "TaskStartupAttemptsTotal",
    "TaskStartupSuccessPercentage",
    "WorkerCount",
    "BytesInPerSec",
    "BytesOutPerSec",
]


def test_every_metric_of_managed_services_is_there() -> None:
    assert sorted(family.name for family in connector_figures.FAMILIES) == sorted(MANAGED)


def test_tasks_that_find_no_place_in_a_slot_are_counted_until_they_have_one() -> None:
    meters = Meters()

    def counts(task: int, run: str, state: copy.CopyRunState.ValueType, reason: str = "") -> tuple[int, int]:
        new = RunUpdate(run_uid=run, state=state, reason=reason)
        new.progress.SetInParent()
        meters.note(Work("x", task), new)
        return meters.waiting(), meters.live()

    assert counts(0, "a", copy.COPY_RUN_STATE_PENDING, "NO_FREE_SLOT") == (1, 0)
    assert counts(1, "b", copy.COPY_RUN_STATE_PENDING, "NO_FREE_SLOT") == (2, 0)
    assert counts(1, "b-part", copy.COPY_RUN_STATE_RUNNING) == (1, 1), "a part of it copies"
    assert counts(0, "a", copy.COPY_RUN_STATE_PENDING) == (0, 2), "its slot starts"
    assert counts(2, "c", copy.COPY_RUN_STATE_PENDING, "WAITING_FOR_CORES")[0] == 0, "no worker could help"
    assert counts(0, "a", copy.COPY_RUN_STATE_PENDING, "NO_FREE_SLOT")[0] == 1
    assert counts(0, "a", copy.COPY_RUN_STATE_FAILED)[0] == 0


def test_what_tasks_of_a_connector_do_is_added_up() -> None:
    meters, out = Meters(), Exposition()
    for task, run in ((0, "a"), (1, "b")):
        last_update = update(run, 1)
        last_update.progress.records_per_second, last_update.progress.bytes_per_second = 10, 1000
        meters.note(Work("x", task), last_update)
    figures = connector_figures.ConnectorFigures("w:1")
    for task, state in ((0, states.RUNNING), (1, states.RUNNING), (2, states.FAILED)):
        figures.add_connector("x", "source").add(state, meters.find(Work("x", task)))
    figures.add_connector("s", "sink")
    figures.add_connector("odd", "")
    for connector in figures.connectors:
        figures.write(out, connector)
    samples = _samples(b"".join(out.families()).decode())
    labels = 'ConnectorName="x",worker="w:1"'
    of_x = {name: value for (name, at), value in samples.items() if at == labels}
    assert of_x == {
        "RunningTaskCount": 2, "ErroredTaskCount": 1, "SourceRecordPollRate": 20, "SourceRecordWriteRate": 20,
        "BytesOutPerSec": 2000,
    }  # fmt: skip
    assert {name for name, at in samples if 'ConnectorName="s"' in at} == {
        "RunningTaskCount", "ErroredTaskCount", "SinkRecordReadRate", "SinkRecordSendRate", "BytesInPerSec",
    }  # fmt: skip
    assert {name for name, at in samples if 'ConnectorName="odd"' in at} == {"RunningTaskCount", "ErroredTaskCount"}


def _samples(text: str) -> dict[tuple[str, str], float]:
    lines = [re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line) for line in text.splitlines()]
    return {(match[1], match[2]): float(match[3]) for match in lines if match}


def test_processors_in_use_are_those_of_the_last_seconds() -> None:
    share = connector_figures.CpuUsage(100.0)
    assert share.of(5, 110.0) == 0.5
    assert share.of(6, 111.0) == pytest.approx(6 / 11)  # only the beginning is old enough yet
    assert share.of(26, 120.0) == pytest.approx(20 / 9)
    assert share.of(26, 126.0) == 0.0
    assert share.of(20, 130.0) == 0.0  # slots have ended
    assert share.of(30, 140.0) == 1.0


def test_the_gateway_passes_on_these_alone_with_the_cluster() -> None:
    name = (
        "# HELP RunningTaskCount Tasks.\n# TYPE RunningTaskCount gauge\n"
        'RunningTaskCount{ConnectorName="x",worker="w:1"} 2\n'
        "# HELP keelman_worker_info 1\n"
        'keelman_worker_info{worker="w:1"} 1\n'
        'CpuUtilization{worker="w:1"} 0.5\n'
    )
    text = merged([("demo", name), ("demo", name.replace("w:1", "w:2")), ("odd", "")]).decode()
    assert text.splitlines() == [
        "# HELP RunningTaskCount Tasks.",
        "# TYPE RunningTaskCount gauge",
        'RunningTaskCount{ConnectorName="x",worker="w:1",worker_cluster="demo"} 2',
        'RunningTaskCount{ConnectorName="x",worker="w:2",worker_cluster="demo"} 2',
        'CpuUtilization{worker="w:1",worker_cluster="demo"} 0.5',
        'CpuUtilization{worker="w:2",worker_cluster="demo"} 0.5',
    ]
