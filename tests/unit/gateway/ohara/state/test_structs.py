"""JSON in a Struct is read back unchanged, also through the wire and at the greatest depth of a request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keelman.api.connect.v1.document_service_pb2 import PutDocumentRequest
from keelman.api.connect.v1.worker_cluster_service_pb2 import UpdateWorkerClusterRequest
from keelman.gateway.ohara.state.structs import struct_of, value_of
from keelman.gateway.ohara.wire.json_types import MAX_DEPTH, parsed


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": {"b": [1, "2", True, None, 0.5, {}]}},
        {"big": [2**53, 2**53 + 1, 2**63 - 1, -(2**70), 10**300]},
        {"none": {"$number": "x"}, "text": "10", "e": 1e300},
        {"umlaut": "grün", "nul": "\0"},
    ],
)
def test_what_is_kept_comes_back(value: dict[str, Any]) -> None:
    back = value_of(struct_of(value))
    assert back == value
    assert json.dumps(back, sort_keys=True) == json.dumps(value, sort_keys=True)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_the_deepest_request_fits_on_our_wire(opening: str) -> None:
    levels = MAX_DEPTH - 1
    text = '{"x":' + opening * levels + "1" + ("]" if opening == "[" else "}") * levels + "}"
    value = parsed(text.encode())
    request = UpdateWorkerClusterRequest()
    request.spec.extra.CopyFrom(struct_of(value))
    read = UpdateWorkerClusterRequest.FromString(request.SerializeToString())
    assert value_of(read.spec.extra) == value
    put = PutDocumentRequest()
    put.document.content.CopyFrom(struct_of({"in": {"in": value}}))
    assert PutDocumentRequest.FromString(put.SerializeToString()) == put
