"""Words for the wire contract's enum values."""

from __future__ import annotations

import pytest

from keelman.api.connect.v1.broker_cluster_pb2 import CLUSTER_STATE_RUNNING, ClusterState
from keelman.api.connect.v1.connector_problem_pb2 import CONNECTOR_PROBLEM_STATE_STALLED, ConnectorProblemState
from keelman.rpc.enums import word


def test_a_word_is_the_name_without_what_all_names_begin_with() -> None:
    assert word(ClusterState, CLUSTER_STATE_RUNNING) == "RUNNING"
    assert word(ConnectorProblemState, CONNECTOR_PROBLEM_STATE_STALLED) == "STALLED"


def test_a_value_that_the_contract_does_not_know_has_none() -> None:
    with pytest.raises(ValueError, match="77"):
        word(ClusterState, 77)
