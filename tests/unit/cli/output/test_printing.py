"""Output: tables for people, proto JSON for programs."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import pytest
import yaml
from google.protobuf.timestamp_pb2 import Timestamp

from keelman.api.connect.v1.broker_cluster_pb2 import (
    CLUSTER_STATE_RUNNING,
    CLUSTER_STATE_STOPPED,
    BrokerCluster,
    BrokerClusterSpec,
    ManagedBrokers,
)
from keelman.api.connect.v1.connector_definition_pb2 import (
    ConnectorDefinition,
    ConnectorDefinitionSpec,
    ConnectorDefinitionStatus,
)
from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorTask, ConnectorType
from keelman.api.connect.v1.operation_pb2 import OPERATION_KIND_APPLY_CONNECTOR, OPERATION_STATE_SUCCEEDED, Operation
from keelman.api.connect.v1.origin_pb2 import Origin
from keelman.api.connect.v1.plugin_pb2 import Plugin, PluginClass
from keelman.api.connect.v1.topic_pb2 import Topic, TopicSpec
from keelman.api.connect.v1.worker_cluster_pb2 import Rollout, WorkerCluster, WorkerClusterSpec, WorkerClusterStatus
from keelman.api.connect.v1.worker_pb2 import Worker
from keelman.api.copy.v1.copy_run_pb2 import LAG_UNIT_BYTES, CopyProgress, CopyRun, CopyRunState
from keelman.api.node.v1.node_pb2 import Node, NodeFigures, NodeSpec, NodeState, NodeStatus
from keelman.api.node.v1.plan_pb2 import Plan, PlanChange
from keelman.api.node.v1.workload_pb2 import ResourceLimits, Workload
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.commands.describe import in_words, print_description
from keelman.cli.commands.get import at_rest
from keelman.cli.commands.logs import behind
from keelman.cli.kinds import KINDS, PLUGIN_CLASSES
from keelman.cli.output.columns import COLUMNS, age, key_of
from keelman.cli.output.lines import plan_lines, topic_line
from keelman.cli.output.printing import print_list, print_one
from keelman.cli.output.words import size
from keelman.connectors.registry import find_connector
from keelman.model.errors import NotFound, Unavailable
from keelman.model.traces import why_line

NODE = Node(name="n1", status=NodeStatus(state=NodeState.NODE_STATE_ONLINE, cpus=2, memory_bytes=3 << 30))
CONNECTOR = Connector(
    worker_cluster="w",
    name="c",
    type=ConnectorType.CONNECTOR_TYPE_SINK,
    state="CONNECTOR_STATE_RUNNING",
    tasks=[
        ConnectorTask(task=0, state="CONNECTOR_STATE_RUNNING"),
        ConnectorTask(task=1, state="CONNECTOR_STATE_FAILED", trace="why\nmore"),
    ],
)


def test_every_kind_has_columns() -> None:
    assert set(COLUMNS) == {kind.plural for kind in (*KINDS, PLUGIN_CLASSES)}


def test_a_table_has_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    print_list(kinds.NODES, [NODE], "table")
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["NAME", "STATE"]
    assert line.split()[:2] == ["n1", "ONLINE"]
    assert "3.0 GiB" in line


def test_what_would_break_a_line_is_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    results = [Connector(worker_cluster="demo", name="two\nlines\x1b[2J \N{SNOWMAN}", state="CONNECTOR_STATE_RUNNING")]
    for form in ("table", "name"):
        print_list(kinds.CONNECTORS, results, form)
        *_, last = capsys.readouterr().out.splitlines()
        assert "two\\nlines\\x1b[2J \N{SNOWMAN}" in last


def test_failed_tasks_are_seen_without_looking_further(capsys: pytest.CaptureFixture[str]) -> None:
    print_list(kinds.CONNECTORS, [CONNECTOR], "table")
    assert "1/2 (1 failed)" in capsys.readouterr().out


def test_wide_shows_more_and_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    long = Connector(
        worker_cluster="w", name="x" * 300, state="CONNECTOR_STATE_RUNNING", config={"connector.class": "C" * 200}
    )
    print_list(kinds.CONNECTORS, [long, CONNECTOR], "wide")
    out = capsys.readouterr().out
    assert "x" * 300 in out
    assert "C" * 200 in out
    assert "why" in out
    assert "more" not in out
    assert "1/2" in out
    assert not [line for line in out.splitlines() if line.endswith(" ")], "no blanks behind the last column"


def test_json_and_yaml_have_the_protos_names_and_zeros(capsys: pytest.CaptureFixture[str]) -> None:
    print_list(kinds.NODES, [NODE], "json")
    (printed,) = json.loads(capsys.readouterr().out)["items"]
    assert printed["status"]["memory_bytes"] == str(3 << 30)
    assert printed["status"]["state"] == "NODE_STATE_ONLINE"
    assert printed["status"]["message"] == ""
    print_one(kinds.NODES, NODE, "yaml")
    assert yaml.safe_load(capsys.readouterr().out)["name"] == "n1"
    print_list(kinds.NODES, [], "json")
    assert json.loads(capsys.readouterr().out) == {"items": []}


def test_names_can_be_typed_again(capsys: pytest.CaptureFixture[str]) -> None:
    print_list(kinds.CONNECTORS, [CONNECTOR], "name")
    assert capsys.readouterr().out == "connector/w/c\n"
    assert key_of(kinds.CONNECTORS, CONNECTOR) == "w/c"


def test_a_trace_is_shown_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_one(kinds.CONNECTORS, CONNECTOR, "yaml")
    out = capsys.readouterr().out
    assert "trace: |-\n    why\n    more\n" in out
    assert yaml.safe_load(out)["tasks"][1]["trace"] == "why\nmore"


async def test_a_description_shows_traces_and_why_copy_runs_wait(capsys: pytest.CaptureFixture[str]) -> None:
    task = ConnectorTask(task=0, state="CONNECTOR_STATE_FAILED", worker_id="h:1", trace="why\n\tat f(x.py:1)")
    failed = Connector(worker_cluster="w", name="c", tasks=[task])
    runs = [
        CopyRun(uid="2", worker_cluster="w", connector="c", create_time=Timestamp(seconds=2), message="no\nroom"),
        CopyRun(uid="1", worker_cluster="w", connector="c", create_time=Timestamp(seconds=1), message="of before"),
    ]
    runs[0].state, runs[0].reason = CopyRunState.COPY_RUN_STATE_PENDING, "NO_FREE_SLOT"

    class Listed:
        async def list(self, *_: Any, **__: Any) -> list[CopyRun]:
            return runs

    await print_description(cast("Gateway", Listed()), kinds.CONNECTORS, failed)
    out = capsys.readouterr().out
    assert "tasks:\n- task 0 FAILED on worker h:1: |-\n    why\n        at f(x.py:1)\n" in out
    assert "NO_FREE_SLOT" in out
    assert "c, task 0: PENDING: no room\n" in out
    assert "of before" not in out


def test_the_classes_of_a_plugin_are_described_by_their_jars() -> None:
    rain = PluginClass(class_name="com.acme.Rain", type="source", version="3", language="java", path="a.jar")
    flip = PluginClass(class_name="com.acme.Flip", type="transformation", language="java", path="a.jar")
    classes = in_words(Plugin(name="acme", version="3", classes=[rain, flip]))["classes"]
    assert classes == {"a.jar": ["source com.acme.Rain 3", "transformation com.acme.Flip"]}


def test_a_description_is_in_words_and_folds_equal_tasks() -> None:
    tasks = [ConnectorTask(task=n, state="CONNECTOR_STATE_RUNNING", worker_id="h:1") for n in (2, 0, 1, 4)]
    tasks.append(ConnectorTask(task=3, state="CONNECTOR_STATE_UNASSIGNED"))
    tasks.append(
        ConnectorTask(task=5, state="CONNECTOR_STATE_RUNNING", worker_id="h:1", waits_for="waits for the file f")
    )
    connector = Connector(worker_cluster="w", name="c", type=ConnectorType.CONNECTOR_TYPE_SOURCE, tasks=tasks)
    connector.config.update({"tasks.max": "5", "connector.class": "X"})
    words = in_words(connector)
    assert words == {
        "worker_cluster": "w",
        "name": "c",
        "type": "SOURCE",
        "config": {"connector.class": "X", "tasks.max": "5"},
        "tasks": [
            "tasks 0-2, 4 RUNNING on worker h:1",
            "task 3 UNASSIGNED",
            {"task 5 RUNNING on worker h:1": "waits for the file f"},
        ],
    }
    assert list(words["config"]) == ["connector.class", "tasks.max"]
    assert in_words(NODE)["status"]["memory_bytes"] == 3 << 30


def test_a_spec_and_its_rollout_are_described_in_sentences() -> None:
    spec = WorkerClusterSpec(
        count=3,
        port=8083,
        reserved_ports=[9500],
        limits=ResourceLimits(cpus=1, memory_bytes=512 << 20),
        origin=Origin(api="ohara", key="wk00"),
        labels={"b": "2", "a": "1"},
    )
    spec.extra.update({"tags": {"x": [1, 2]}})
    rollout = Rollout(state="ROLLOUT_STATE_HALTED", updated_workers=2, workers=3, worker="demo/1", message="it\nended")
    words = in_words(WorkerCluster(name="w", spec=spec, status=WorkerClusterStatus(rollout=rollout)))
    assert words["spec"]["limits"] == "1 processor, 512.0 MiB of memory, each worker"
    assert words["spec"]["origin"] == "ohara, wk00"
    assert repr(words["spec"]["extra"]) == "{'tags': {'x': [1, 2]}}"
    assert list(words["spec"]["labels"]) == ["a", "b"]
    assert words["status"]["rollout"] == (
        "2 of 3 workers have the change; worker demo/1 did not come up: it ended; the others keep their former settings"
    )
    assert words["spec"]["ports"] == "rest 8083, reserved 9500"
    assert not {"port", "reserved_ports", "metrics_port", "https"} & set(words["spec"])
    assert in_words(WorkerCluster(spec=WorkerClusterSpec(limits=ResourceLimits(), https=True)))["spec"] == {
        "https": True
    }
    slipped = WorkerCluster(spec=WorkerClusterSpec(properties={"keelman.park.aftre.ms": "1"}))
    assert in_words(slipped)["notes"] == ["keelman.park.aftre.ms: unknown, did you mean keelman.park.after.ms?"]
    managed = BrokerClusterSpec(managed=ManagedBrokers(nodes=["a"], controllers=1))
    assert in_words(BrokerCluster(spec=managed))["spec"] == {"managed": {"nodes": ["a"], "controllers": 1}}
    more = {"heap_mb": 1024, "routes": {"kafka.example": "10.0.0.9"}, "metrics_port": 9404, "data_folders": ["/data"]}
    managed.managed.MergeFrom(ManagedBrokers(**more))
    assert in_words(BrokerCluster(spec=managed))["spec"]["managed"].items() >= more.items(), (
        "the given fields are described"
    )


def test_a_node_is_described_with_what_it_has_left_and_whether_it_takes_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = NodeFigures(cpus_used=1.25, memory_available_bytes=3 << 30, disk_free_bytes=5 << 30, load=0.5)
    node = Node(name="n1", spec=NodeSpec(labels={"disk": "ssd"}, cordoned=True), status=NodeStatus(figures=figures))
    assert in_words(node)["status"]["figures"] == (
        "1.2 processors used, 3.0 GiB of memory and 5.0 GiB of disk free, load 0.50"
    )
    print_list(kinds.NODES, [node, Node(name="n2")], "wide")
    title, first, second = capsys.readouterr().out.splitlines()
    assert {"NEW WORK", "CPUS USED", "MEMORY FREE", "LABELS"} <= set(re.split(r"  +", title))
    assert {"cordoned", "3.0 GiB", "disk=ssd"} <= set(re.split(r"  +", first))
    assert second.split()[:6] == ["n2", "UNSPECIFIED", "no", "-", "-", "-"], "nothing is known of it yet"


def test_a_wide_cluster_shows_ports_labels_and_rollout(capsys: pytest.CaptureFixture[str]) -> None:
    spec = WorkerClusterSpec(port=8083, metrics_port=9400, reserved_ports=[9500, 9501], labels={"team": "blue"})
    rollout = Rollout(state="ROLLOUT_STATE_ROLLING", updated_workers=1, workers=2)
    print_list(kinds.WORKER_CLUSTERS, [WorkerCluster(spec=spec, status=WorkerClusterStatus(rollout=rollout))], "wide")
    out = capsys.readouterr().out
    for text in ("rest 8083, metrics 9400, reserved 9500 9501", "team=blue", "ROLLING 1/2"):
        assert text in out


def test_what_is_kept_for_others_is_found_by_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    origin = Origin(api="ohara", scope="default", key="mine")
    of_spec = {
        kinds.BROKER_CLUSTERS: BrokerCluster(spec=BrokerClusterSpec(origin=origin)),
        kinds.WORKER_CLUSTERS: WorkerCluster(spec=WorkerClusterSpec(origin=origin)),
        kinds.DEFINITIONS: ConnectorDefinition(spec=ConnectorDefinitionSpec(origin=origin)),
        kinds.TOPICS: topic_line(Topic(spec=TopicSpec(origin=origin))),
        kinds.PLUGINS: Plugin(origin=origin),
    }
    for kind, resource in of_spec.items():
        print_list(kind, [resource], "wide")
        assert "ohara, default, mine" in capsys.readouterr().out, kind


def test_the_words_of_a_refusal_name_plugins_by_their_classes() -> None:
    with pytest.raises(NotFound) as raised:
        find_connector("NoSuchClass")
    status = ConnectorDefinitionStatus(message=raised.value.message)
    message = in_words(ConnectorDefinition(status=status))["status"]["message"]
    assert "org.apache.kafka.connect.file.FileStreamSourceConnector" in message
    assert "PluginDesc" not in message


def test_a_refusal_is_whole_in_a_wide_line(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "contains the following 1 error(s):\nMissing required configuration.\nSee below"
    for kind, resource in (
        (kinds.DEFINITIONS, ConnectorDefinition(status=ConnectorDefinitionStatus(message=reason))),
        (kinds.OPERATIONS, Operation(message=reason)),
    ):
        print_list(kind, [resource], "wide")
        assert "1 error(s): Missing required configuration; See below" in capsys.readouterr().out, kind


async def test_a_cluster_without_workers_is_described_by_what_can_be_known(capsys: pytest.CaptureFixture[str]) -> None:
    class Listed:
        async def list(self, kind: kinds.Kind, **_: Any) -> list[Any]:
            if kind is kinds.CONNECTORS:
                raise Unavailable("no running worker")
            return [Worker(name="w/0")] if kind is kinds.WORKERS else []

    await print_description(cast("Gateway", Listed()), kinds.WORKER_CLUSTERS, WorkerCluster(name="w"))
    printed = capsys.readouterr()
    assert "w/0" in printed.out
    assert printed.err == "no connectors: no running worker\n"


def test_nothing_is_said_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_list(kinds.NODES, [], "table")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "no nodes\n")
    print_list(kinds.COPY_RUNS, [], "table")
    assert "--ended" in capsys.readouterr().err


def test_a_head_that_names_no_record_gives_way_to_what_is_behind_it() -> None:
    bare = "a.ConnectException: Tolerance exceeded in error handler\n"
    assert why_line(bare + "Caused by: a.DataException: bad (topic t, offset 1)\n\tat x") == (
        "a.DataException: bad (topic t, offset 1)"
    )
    assert why_line(bare) == bare.strip()
    assert why_line("a.KafkaException: X\nCaused by: b: y\n") == "a.KafkaException: X"


def test_ages_and_sizes() -> None:
    stamp = Timestamp(seconds=1000)
    assert [age(stamp, 1000 + s) for s in (0, 59, 60, 3600, 90_000)] == ["0s", "59s", "1m", "1h", "1d"]
    assert age(Timestamp()) == ""
    assert [size(n) for n in (0, 1023, 1536, 5 << 20, 5 << 40)] == ["0 B", "1023 B", "1.5 KiB", "5.0 MiB", "5120.0 GiB"]


def test_logs_are_those_of_the_processes_behind() -> None:
    names = ("broker/default/0", "spark/n1", "spark/n2", "worker/w/0", "worker/ww/0")
    all_of_them = [Workload(name=n, node="n2" if n in ("spark/n2", "worker/ww/0") else "n1") for n in names]

    def of(kind: kinds.Kind, **fields: str) -> list[str]:
        return [w.name for w in behind(kind, type("Resource", (), fields), all_of_them)]

    assert of(kinds.WORKER_CLUSTERS, name="w") == ["worker/w/0"]
    assert of(kinds.WORKERS, name="w/0") == ["worker/w/0"]
    assert of(kinds.BROKER_CLUSTERS, name="default") == ["broker/default/0"]
    assert of(kinds.CONNECTORS, worker_cluster="ww") == ["worker/ww/0", "spark/n2"]
    assert of(kinds.COPY_RUNS, worker_cluster="w") == ["spark/n1"]
    assert of(kinds.NODES, name="n2") == ["spark/n2", "worker/ww/0"]
    assert of(kinds.WORKLOADS, name="spark/n1") == ["spark/n1"]


def test_clusters_that_do_not_run_may_have_connectors() -> None:
    stopped = WorkerCluster(name="night", status=WorkerClusterStatus(state=CLUSTER_STATE_STOPPED))
    running = WorkerCluster(name="day", status=WorkerClusterStatus(state=CLUSTER_STATE_RUNNING, ready_workers=1))
    notes = ["worker cluster night is STOPPED: its connectors are shown once it runs"]
    assert at_rest([stopped, running], "") == at_rest([stopped, running], "night") == notes
    assert at_rest([stopped, running], "day") == []


def test_copy_runs_fit_into_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    progress = CopyProgress(records=1_234_567, bytes=99_999_999, bytes_per_second=12_345_678, lag=123_456_789)
    progress.lag_unit = LAG_UNIT_BYTES
    run = CopyRun(uid="0123456789abcdef" * 2, worker_cluster="first", connector="lines-out", progress=progress)
    run.state, run.reason = CopyRunState.COPY_RUN_STATE_RUNNING, "PARKED"
    print_list(kinds.COPY_RUNS, [run], "table")
    title, row = capsys.readouterr().out.splitlines()
    assert title.split() == ["ID", "CONNECTOR", "TASK", "STATE", "RECORDS", "RATE", "LEFT", "REASON"]
    assert row.split()[:2] == ["012345", "first/lines-out"]
    assert max(map(len, (title, row))) <= 80


def test_operations_and_plugins_fit_into_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    operation = Operation(name="op-00064451c0ffee-ab12", kind=OPERATION_KIND_APPLY_CONNECTOR)
    operation.target.noun, operation.target.name = "connector_definition", "nightly-lines"
    operation.state = OPERATION_STATE_SUCCEEDED
    plugin = Plugin(name="debezium-postgres", version="3.5.0.Final", worker_clusters=["first"])
    plugin.classes.add(type="source", class_name="io.debezium.connector.postgresql.PostgresConnector")
    for kind, resource in ((kinds.OPERATIONS, operation), (kinds.PLUGINS, plugin)):
        print_list(kind, [resource], "table")
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 80, kind


def test_plans_have_a_line_a_change_and_are_whole_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    moved = PlanChange(
        workload="worker/w/0", action="PLAN_ACTION_MOVE", node="n2", from_node="n1", reason="node n1 is drained"
    )
    placed = PlanChange(workload="spark/n2", action="PLAN_ACTION_PLACE", node="n2", reason="worker/w/0 needs it")
    plan = Plan(revision=17, changes=[placed, moved])
    print_list(kinds.PLANS, plan_lines([plan]), "table")
    title, first, second = (re.split(r"  +", line) for line in capsys.readouterr().out.splitlines())
    assert title == ["PLAN", "AGE", "WORKLOAD", "ACTION", "NODE", "REASON"]
    assert first == ["17", "-", "spark/n2", "PLACE", "n2", "worker/w/0 needs it"]
    assert second == ["17", "-", "worker/w/0", "MOVE", "n1 to n2", "node n1 is drained"]
    assert [line.key for line in plan_lines([plan], "worker/w/0")] == ["17/worker/w/0"]
    print_list(kinds.PLANS, [plan], "name")
    assert capsys.readouterr().out == "plan/17\n"
    print_list(kinds.PLANS, [plan], "json")
    assert len(json.loads(capsys.readouterr().out)["items"][0]["changes"]) == 2
