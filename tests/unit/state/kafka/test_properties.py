"""Properties of clusters: invalid ones are refused when they are written, each under its field."""

import dataclasses
from datetime import UTC, datetime

import pytest

from keelman.kafka.properties.broker_keys import SET_ELSEWHERE
from keelman.model.cluster import ExternalBrokers, ManagedBrokers, WorkerClusterSpec, WorkerEngine
from keelman.model.errors import InvalidArgument
from keelman.model.node import Node, NodeState
from keelman.state.clusters.broker_checks import check
from keelman.state.kafka.properties import check_worker_properties
from support.state.snapshots import snapshot_of
from support.worker.refused_properties import ENVIRONMENT, EXTENSION, ILLEGAL, PLAIN, REFUSED

TIME = datetime(2026, 1, 1, tzinfo=UTC)
NODE = Node("n1", "u", TIME, TIME, NodeState.ONLINE, "127.0.0.1:7420")
SNAPSHOT = snapshot_of({"n1": NODE}, {}, {}, {})
NOT_THE_USERS = ("bootstrap.servers", "listeners", "keelman.metrics.listeners")
LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{PLAIN} required username="u" password="s3cret-word";',
}


def refused(properties: dict[str, str], **more: object) -> InvalidArgument:
    spec = dataclasses.replace(WorkerClusterSpec("default", count=1, properties=properties), **more)
    with pytest.raises(InvalidArgument) as caught:
        check_worker_properties("demo", spec)
    return caught.value


@pytest.mark.parametrize(("key", "value", "legal"), [case for case in ILLEGAL if case[0] not in NOT_THE_USERS])
def test_what_a_worker_would_refuse_is_refused_with_its_field_and_what_is_legal(key, value, legal) -> None:
    submitted = {key: value} | ({"offset.storage.topic": value} if key == "status.storage.topic" else {})
    error = refused(submitted)
    assert [violation.field for violation in error.violations] == [f"spec.properties.{key}"]
    assert error.message == error.violations[0].description
    assert error.message.startswith(f"spec.properties.{key}: ")
    assert value in error.message
    assert legal in error.message


def test_all_that_is_wrong_is_told_at_once_each_under_its_field() -> None:
    fields = {"listeners": "http://:1", "session.timeout.ms": "soon", "keelman.cpus": "none", "producer.acks": "few"}
    error = refused(fields)
    assert {violation.field.removeprefix("spec.properties.") for violation in error.violations} == set(fields)
    assert error.message.startswith("4 things are wrong: spec.properties.listeners: 'http://:1' is not legal: leave")


def test_the_installation_s_policy_is_not_the_users_to_say() -> None:
    error = refused({"keelman.policy.installation.paths.allowed": "*"})
    assert error.message.startswith(
        "spec.properties.keelman.policy.installation.paths.allowed: '*' is not legal: leave"
    )
    assert "keelman.policy.paths.allowed is yours" in error.message
    own = {"keelman.policy.paths.allowed": "/data", "keelman.policy.code.by.name": "denied"}
    check_worker_properties("demo", WorkerClusterSpec("default", count=1, properties=own))
    assert "keelman.policy.paths.allowd" in refused({"keelman.policy.paths.allowd": "/data"}).message


def test_where_a_worker_is_reached_is_not_the_users_to_say() -> None:
    assert "spec.broker_cluster" in refused({"bootstrap.servers": "a:1"}).message
    assert "spec.https" in refused({"listeners": ""}).message
    assert "spec.admin_port" in refused({"admin.listeners": "http://:1"}).message
    assert "spec.metrics_port" in refused({"keelman.metrics.listeners": "http://:1"}).message
    check_worker_properties("demo", WorkerClusterSpec("default", count=1, properties={"admin.listeners": ""}))


def test_https_needs_a_key_and_a_certificate() -> None:
    keystore = "listeners.https.ssl.keystore.location"
    (violation,) = refused({}, https=True).violations
    assert violation.field == "spec.properties.ssl.keystore.location"
    assert "an https listener needs a key and a certificate" in violation.description
    check_worker_properties("demo", WorkerClusterSpec("default", count=1, properties={keystore: "/k"}, https=True))
    (violation,) = refused({keystore: "/k"}, https=True, admin_port=8084, metrics_port=8085).violations
    assert violation.field == "spec.properties.ssl.keystore.location", (
        "administrators' listeners have keys of their own"
    )


def test_what_the_workers_host_may_make_right_is_taken() -> None:
    fields = {**LOGIN, **ENVIRONMENT, "rest.extension.classes": EXTENSION, "keelman.jaas.file": "/not/here"}
    fields |= {"session.timeout.ms": "${env:SESSION}", "plugin.path": "/not/here", "acme.own": "x"}
    check_worker_properties("demo", WorkerClusterSpec("default", count=1, properties=fields))


def test_properties_are_judged_with_those_by_which_its_brokers_are_reached() -> None:
    half = {"producer.security.protocol": "SASL_SSL", "producer.sasl.mechanism": "PLAIN"}
    (violation,) = refused(half).violations
    assert "sasl.jaas.config is missing" in violation.description
    check_worker_properties("demo", WorkerClusterSpec("default", count=1, properties=half), LOGIN)


def test_workers_of_kafka_connect_are_held_to_what_they_refuse_themselves() -> None:
    values = {"session.timeout.ms": "soon", "offset.storage.partitions": "0", "keelman.cpus": "none", "acme.own": "x"}
    error = refused(values, engine=WorkerEngine.KAFKA_CONNECT)
    fields = {violation.field.removeprefix("spec.properties.") for violation in error.violations}
    assert fields == {"session.timeout.ms", "offset.storage.partitions"}
    assert "spec.properties.session.timeout.ms: Invalid value soon" in error.message
    (missing,) = refused({}, engine=WorkerEngine.KAFKA_CONNECT, https=True).violations
    assert missing.field == "spec.properties.ssl.keystore.location"
    own = {"value.converter": "com.example.Own", "metric.reporters": "com.example.Own"}
    spec = WorkerClusterSpec("default", count=1, properties=own, engine=WorkerEngine.KAFKA_CONNECT)
    check_worker_properties("demo", spec)


def test_no_secret_is_in_what_is_refused() -> None:
    login = {**LOGIN, "sasl.jaas.config": f'{PLAIN} required password="s3cret-word";'}
    error = refused({**login, "session.timeout.ms": "soon"})
    assert len(error.violations) == 2
    assert "s3cret-word" not in error.message


def test_broker_properties_that_keelman_sets_are_refused_each_under_its_field() -> None:
    value = dict.fromkeys(SET_ELSEWHERE, "x") | {"num.partitions": "3"}
    with pytest.raises(InvalidArgument) as caught:
        check(ManagedBrokers(("n1",), value), SNAPSHOT)
    fields = {violation.field.removeprefix("spec.managed.properties.") for violation in caught.value.violations}
    assert fields == set(SET_ELSEWHERE)


def test_client_properties_that_no_client_can_use_are_refused() -> None:
    check(ExternalBrokers("a:1", LOGIN), SNAPSHOT)
    with pytest.raises(InvalidArgument) as caught:
        check(ExternalBrokers("a:1", {**LOGIN, "sasl.mechanism": "GSSAPI", "request.timeout.ms": "soon"}), SNAPSHOT)
    assert {violation.field for violation in caught.value.violations} >= {
        "spec.external.client_properties.request.timeout.ms"
    }


def test_the_table_is_of_what_is_refused() -> None:
    for name, value in REFUSED.items():
        if not {*NOT_THE_USERS, "admin.listeners"} & value.keys():
            assert refused(value).violations, name
