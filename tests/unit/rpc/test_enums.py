"""Words for the wire contract's enum values."""

from __future__ import annotations

import pytest

from keelman.api.connect.v1.broker_cluster_pb2 import CLUSTER_STATE_RUNNING, ClusterState
from keelman.api.connect.v1.connector_problem_pb2 import CONNECTOR_PROBLEM_STATE_STALLED, ConnectorProblemState
from keelman.api.connect.v1.connector_service_pb2 import ListConnectorsRequest
from keelman.api.node.v1.session_service_pb2 import WorkloadReport
from keelman.api.node.v1.workload_pb2 import WORKLOAD_STATE_RUNNING, WorkloadStatus
from keelman.model.errors import InvalidArgument
from keelman.rpc.enums import check_enums, word


def test_a_word_is_the_name_without_what_all_names_begin_with() -> None:
    assert word(ClusterState, CLUSTER_STATE_RUNNING) == "RUNNING"
    assert word(ConnectorProblemState, CONNECTOR_PROBLEM_STATE_STALLED) == "STALLED"


def test_a_value_that_the_contract_does_not_know_has_none() -> None:
    with pytest.raises(ValueError, match="77"):
        word(ClusterState, 77)


def test_known_values_are_let_through() -> None:
    check_enums(ListConnectorsRequest())
    check_enums(ListConnectorsRequest(state="CONNECTOR_STATE_FAILED"))
    check_enums(WorkloadReport(statuses={"a": WorkloadStatus(state=WORKLOAD_STATE_RUNNING)}))


def test_a_value_that_is_not_known_is_refused_with_its_path_and_what_is_legal() -> None:
    request = ListConnectorsRequest()
    request.MergeFromString(b"\x20\x4d")  # proto3 accepts any number
    with pytest.raises(InvalidArgument, match=r"^state: 77 is not legal: one of CONNECTOR_STATE_UNSPECIFIED, CONN"):
        check_enums(request)
    report = WorkloadReport()
    report.statuses["worker/a/0"].MergeFromString(b"\x08\x4d")
    with pytest.raises(InvalidArgument, match=r"^statuses\[worker/a/0\]\.state: 77 is not legal"):
        check_enums(report)
