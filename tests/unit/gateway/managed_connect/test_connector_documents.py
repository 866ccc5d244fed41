"""Connectors in answers."""

from datetime import UTC, datetime
from typing import Any

import pytest

from keelman.api.connect.v1.dedicated_connector_pb2 import DEDICATED_CONNECTOR_STATE_RUNNING, DedicatedConnector
from keelman.api.connect.v1.origin_pb2 import Origin
from keelman.api.node.v1.workload_pb2 import LogProblem
from keelman.gateway.managed_connect.connector_documents import client_properties, description
from keelman.gateway.managed_connect.control import extra_of
from keelman.gateway.managed_connect.errors import WireError
from keelman.rpc.times import to_timestamp


def found() -> DedicatedConnector:
    """A connector that runs."""
    connector = DedicatedConnector(name="mc-abc12345abcd4444a8b9123456f513ed")
    connector.spec.connector = "c"
    connector.spec.origin.CopyFrom(Origin(api="managed-connect", scope="123450006789", key="c"))
    connector.spec.extra.CopyFrom(extra_of({"region": "us-east-1", "networkType": "IPV4"}, {"a": "b"}))
    connector.status.state = DEDICATED_CONNECTOR_STATE_RUNNING
    return connector


def test_one_that_runs_and_whose_logs_are_not_delivered_says_so() -> None:
    connector = found()
    assert "stateDescription" not in description(connector)
    since = to_timestamp(datetime(2026, 11, 25, 12, 0, 0, tzinfo=UTC))
    connector.status.log_problems.append(LogProblem(stream="c-0", target="s3", message="no such bucket", since=since))
    document = description(connector)
    assert document["connectorState"] == "RUNNING"
    assert document["stateDescription"] == {
        "code": "LogDeliveryError.NotDelivered",
        "message": "Logs are not delivered: s3: c-0: no such bucket (since 2026-11-25T12:00:00.000Z)",
    }
    connector.status.code, connector.status.message = "ConnectorError.TaskFailed", "task 0 failed"
    assert description(connector)["stateDescription"] == {
        "code": "ConnectorError.TaskFailed",
        "message": "task 0 failed",
    }


ROLE = "arn:aws:iam::123450006789:role/connect"
ROLES, TLS = {ROLE: {"sasl.mechanism": "PLAIN"}}, {"ssl.truststore.type": "PEM"}


def secured(authentication: str, encryption: str, role: str = ROLE) -> dict[str, Any]:
    """A create request's fields for how its workers connect to Kafka."""
    return {
        "kafkaClusterClientAuthentication": {"authenticationType": authentication},
        "kafkaClusterEncryptionInTransit": {"encryptionType": encryption},
        "serviceExecutionRoleArn": role,
    }


@pytest.mark.parametrize(
    ("authentication", "encryption", "expected"),
    [
        ("NONE", "PLAINTEXT", {}),
        ("NONE", "TLS", {"security.protocol": "SSL"} | TLS),
        ("IAM", "TLS", {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}),
    ],
)
def test_how_workers_speak_to_kafka(authentication: str, encryption: str, expected: dict[str, str]) -> None:
    assert client_properties(secured(authentication, encryption), ROLES, TLS, account="123450006789") == expected


def test_iam_needs_tls_and_a_role_that_is_known() -> None:
    with pytest.raises(WireError, match="It must be TLS where authenticationType is IAM"):
        client_properties(secured("IAM", "PLAINTEXT"), ROLES, TLS, account="123450006789")
    with pytest.raises(WireError, match="none of the roles"):
        client_properties(
            secured("IAM", "TLS", "arn:aws:iam::123450006789:role/other"), ROLES, TLS, account="123450006789"
        )
