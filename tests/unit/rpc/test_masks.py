"""How an update with a mask changes a resource."""

from __future__ import annotations

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec, WorkerNodes
from keelman.model.errors import InvalidArgument
from keelman.rpc.masks import masked

PRESENT = WorkerClusterSpec(broker_cluster="b", count=2, properties={"a": "1", "b": "2"}, reserved_ports=[1, 2])


def test_an_empty_mask_names_all_fields() -> None:
    spec = WorkerClusterSpec(broker_cluster="c")
    assert masked(PRESENT, spec, FieldMask()) == spec


def test_named_fields_are_taken_whole_and_the_others_stay() -> None:
    spec = WorkerClusterSpec(properties={"c": "3"}, reserved_ports=[9], description="not named")
    merged = masked(PRESENT, spec, FieldMask(paths=["properties", "reserved_ports"]))
    assert merged == WorkerClusterSpec(broker_cluster="b", count=2, properties={"c": "3"}, reserved_ports=[9])
    assert PRESENT.count == 2


def test_a_field_that_is_named_and_not_given_is_cleared() -> None:
    merged = masked(PRESENT, WorkerClusterSpec(), FieldMask(paths=["properties"]))
    assert not merged.properties


def test_one_placement_takes_the_place_of_the_other() -> None:
    spec = WorkerClusterSpec(nodes=WorkerNodes(names=["n"]))
    merged = masked(PRESENT, spec, FieldMask(paths=["nodes"]))
    assert merged.WhichOneof("placement") == "nodes"


def test_a_path_that_is_no_field_is_named() -> None:
    with pytest.raises(InvalidArgument, match="cuont"):
        masked(PRESENT, WorkerClusterSpec(), FieldMask(paths=["cuont"]))
