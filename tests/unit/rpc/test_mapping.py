"""Messages of dataclasses, and back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from keelman.api.connect.v1 import plugin_pb2, topic_pb2
from keelman.api.node.v1 import workload_pb2
from keelman.model.annotations import Annotations, Origin
from keelman.model.workload import PluginFile, ProcessState, WorkerSpec, WorkloadStatus
from keelman.rpc.mapping import message_of, value_of

TIME = datetime(2026, 5, 1, 12, 30, 0, 250_000, tzinfo=UTC)
STATUS = WorkloadStatus(ProcessState.RUNNING, 3, pid=7, start_time=TIME, exit_code=0, message="well")


def test_words_times_and_what_is_absent_there_and_back() -> None:
    message = message_of(workload_pb2.WorkloadStatus, STATUS)
    assert message.state == workload_pb2.WORKLOAD_STATE_RUNNING
    assert message.start_time.ToDatetime(tzinfo=UTC) == TIME
    assert message.HasField("exit_code")
    assert not message.HasField("observe_time")
    assert value_of(WorkloadStatus, message) == STATUS


def test_what_is_given_stands_in_place_of_a_field() -> None:
    message = message_of(workload_pb2.WorkloadStatus, STATUS, pid=None, reason="GIVEN")
    assert not message.HasField("pid")
    assert message.reason == "GIVEN"
    assert value_of(WorkloadStatus, message, generation=9).generation == 9


def test_dataclasses_in_dataclasses_one_by_one() -> None:
    files = (PluginFile("a", "1", "x", 5), PluginFile("b", "2", "y"))
    worker = WorkerSpec("wc", "h", 1, {"k": "v"}, "h:2", reserved_ports=(3, 4), plugins=files)
    message = message_of(workload_pb2.WorkerWorkload, worker)
    assert [plugin.name for plugin in message.plugins] == ["a", "b"]
    assert dict(message.properties) == {"k": "v"}
    back = value_of(WorkerSpec, message, restart=0)
    assert back == worker


def test_json_and_an_origin_that_may_be_absent() -> None:
    annotations = Annotations("d", {"a": "b"}, Origin("api", "scope", "key"), {"n": [1.0, {"x": None}]})
    message = message_of(topic_pb2.TopicSpec, annotations)
    assert value_of(Annotations, message) == annotations
    assert value_of(Annotations, topic_pb2.TopicSpec()) == Annotations()
    assert not message_of(topic_pb2.TopicSpec, Annotations(extra={})).HasField("extra")


def test_a_word_that_an_enum_has_not() -> None:
    with pytest.raises(ValueError, match="UNSPECIFIED"):
        value_of(WorkloadStatus, workload_pb2.WorkloadStatus())


def test_fields_of_one_side_only_are_left_out() -> None:
    assert message_of(plugin_pb2.PluginRef, PluginFile("a", "1", "x", 5, "a.jar")) == plugin_pb2.PluginRef(
        name="a", version="1", sha256="x"
    )
