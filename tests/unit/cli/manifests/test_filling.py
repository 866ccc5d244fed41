"""A manifest becomes a message, and each mistake is reported with its field, its value and the legal values."""

from __future__ import annotations

from typing import Any

import pytest

from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnectorSpec
from keelman.api.connect.v1.worker_cluster_pb2 import WORKER_ENGINE_KAFKA_CONNECT, WorkerClusterSpec
from keelman.cli.manifests.differences import FieldDifference, differences
from keelman.cli.manifests.filling import fill
from keelman.cli.manifests.texts import yaml_documents
from keelman.model.errors import InvalidArgument

WHOLE = """
broker_cluster: b
autoscale: {min_workers: 1, max_workers: 4, sample_period: 5s, scale_out_cpu_percent: 70}
properties: {a: 010, b: true, c: 1.10, d: 5}
reserved_ports: [1, 2]
limits: {cpus: 1.5, memory_bytes: 512MiB}
https: true
engine: kafka-connect
plugins: [{name: acme, version: 1.2}]
extra: {x: [1, {y: z}]}
description:
"""


def read(text: str) -> Any:
    ((_, document),) = yaml_documents(text)
    return document


def test_all_sorts_of_fields_are_filled() -> None:
    spec = WorkerClusterSpec()
    fill(spec, read(WHOLE), "spec")
    assert dict(spec.properties) == {"a": "010", "b": "true", "c": "1.10", "d": "5"}
    assert (spec.autoscale.max_workers, spec.autoscale.sample_period.seconds) == (4, 5)
    assert (spec.limits.memory_bytes, spec.limits.cpus) == (512 << 20, 1.5)
    assert (list(spec.reserved_ports), spec.https, spec.engine) == ([1, 2], True, WORKER_ENGINE_KAFKA_CONNECT)
    assert spec.plugins[0].version == "1.2"
    assert spec.extra["x"][1]["y"] == "z"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{prot: 1}", "spec.prot: unknown field: did you mean 'port'? one of admin_port"),
        ("{port: x}", "spec.port: 'x' is not legal: a whole number"),
        ("{port: 1.5}", "spec.port: 1.5 is not legal: a whole number"),
        ("{port: true}", "spec.port: True is not legal: a whole number"),
        ("{port: 99999999999}", "spec.port: 99999999999 is not legal: a whole number of 32 bits"),
        ("{https: maybe}", "spec.https: 'maybe' is not legal: true or false"),
        ("{https: 1}", "spec.https: 1 is not legal: true or false"),
        ("{engine: java}", "spec.engine: 'java' is not legal: one of KEELMAN, KAFKA_CONNECT"),
        ("{reserved_ports: 1}", "spec.reserved_ports: 1 is not legal: a list"),
        ("{reserved_ports: [1, x]}", "spec.reserved_ports[1]: 'x' is not legal"),
        ("{properties: [1]}", "spec.properties: [1] is not legal: fields and their values"),
        ("{properties: {a: [1]}}", "spec.properties.a: [1] is not legal: a text"),
        ("{limits: {cpu: 1}}", "spec.limits.cpu: unknown field: did you mean 'cpus'?"),
        ("{limits: {memory_bytes: 5 parsecs}}", "spec.limits.memory_bytes: '5 parsecs' is not legal"),
        ("{limits: {cpus: much}}", "spec.limits.cpus: 'much' is not legal: a number"),
        ("{autoscale: {sample_period: soon}}", "spec.autoscale.sample_period: 'soon' is not legal: a Duration"),
        ("{count: 1, nodes: {names: [a]}}", "spec.nodes: not together with count"),
        ("5", "spec: 5 is not legal: fields and their values"),
    ],
)
def test_a_mistake_names_field_value_and_what_is_legal(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        fill(WorkerClusterSpec(), read(text), "spec")
    assert raised.value.message.startswith(message)


def test_either_of_two_that_exclude_each_other_within_a_field() -> None:
    with pytest.raises(InvalidArgument, match=r"spec.external: not together with broker_cluster"):
        fill(DedicatedConnectorSpec(), read("{broker_cluster: b, external: {}}"), "spec")


def test_differences_are_fields_with_their_paths() -> None:
    former = {"a": 1, "m": {"x": "1", "y.z": "2"}, "l": [1], "same": {"q": 1}}
    expected = {"a": 2, "m": {"y.z": "3"}, "l": [1, 2], "same": {"q": 1}, "new": {"k": "v"}}
    assert differences(former, expected) == [
        FieldDifference("a", 1, 2),
        FieldDifference("l", [1], [1, 2]),
        FieldDifference("m.x", "1", None),
        FieldDifference("m.y.z", "2", "3"),
        FieldDifference("new.k", None, "v"),
    ]
    assert differences(expected, expected) == []
