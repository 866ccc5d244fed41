"""Authentication with brokers: none, and IAM as a role's client properties, with a broker that requires a login."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from keelman.kafka.security.oauth import ALLOWED_KEY
from support.brokers.secure_broker import SECRET, USER, SecureBroker
from support.certificates import PASSWORD
from support.eventually import eventually
from support.gateway.managed_connect.bare import Bare, bare_system
from support.gateway.managed_connect.cases import CONFIG
from support.gateway.managed_connect.world import (
    OTHER_ACCOUNT,
    OTHER_KEY,
    OTHER_SECRET,
    bad_request,
    connector,
    sdk_client,
)
from support.servers.token_server import token_server

pytestmark = pytest.mark.component
GOOD, WRONG = "arn:aws:iam::123450006789:role/good", "arn:aws:iam::123450006789:role/wrong"
BY_TOKEN = "arn:aws:iam::123450006789:role/token"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
IAM = {"kafkaClusterClientAuthentication": {"authenticationType": "IAM"}}
TLS = {"kafkaClusterEncryptionInTransit": {"encryptionType": "TLS"}}


def role(arn: str, properties: Mapping[str, str]) -> str:
    """A role in the file of access keys."""
    lines = "\n".join(f"{json.dumps(key)} = {json.dumps(text)}" for key, text in properties.items())
    return f"\n[[role]]\narn = {json.dumps(arn)}\n[role.client_properties]\n{lines}\n"


@pytest.fixture(scope="module")
async def bare(broker: SecureBroker, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bare]:
    folder: Path = tmp_path_factory.mktemp("roles")

    def properties(secret: str) -> dict[str, str]:
        return {
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{SCRAM} required username="{USER}" password="{secret}";',
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(broker.authority.write_trust(folder / "trust.p12")),
            "ssl.truststore.password": PASSWORD,
        }

    with token_server() as tokens:
        by_token = broker.with_tokens_of(tokens.url) | {ALLOWED_KEY: tokens.url}
        del by_token["bootstrap.servers"]
        roles = role(GOOD, properties(SECRET)) + role(WRONG, properties("another")) + role(BY_TOKEN, by_token)
        async with bare_system(folder, roles=roles, **{"oauth-urls": tokens.url}) as system:
            yield system


async def failed(bare: Bare, sent: dict[str, Any]) -> dict[str, str]:
    """The reason why a connector that is created so has failed, as it does without nodes."""
    arn = bare.sdk.create_connector(**sent)["connectorArn"]

    def told() -> dict[str, str] | None:
        actual_connector = bare.sdk.describe_connector(connectorArn=arn)
        assert "client_properties" not in json.dumps(actual_connector, default=str)
        return actual_connector["stateDescription"] if actual_connector["connectorState"] == "FAILED" else None

    answer: dict[str, str] = await eventually(told, what="it has failed")
    return answer


async def test_a_role_is_how_brokers_are_spoken_to(bare: Bare, broker: SecureBroker) -> None:
    sent = connector("good", broker.at("SASLTLS"), CONFIG, serviceExecutionRoleArn=GOOD, **IAM, **TLS)
    reason = await failed(bare, sent)
    assert reason["code"] == "CapacityError.NoNodeAvailable", ("the brokers took the role", reason)
    sent = connector("token", broker.at("OAUTH"), CONFIG, serviceExecutionRoleArn=BY_TOKEN, **IAM, **TLS)
    reason = await failed(bare, sent)
    assert reason["code"] == "CapacityError.NoNodeAvailable", ("the brokers took the role's token", reason)


async def test_a_role_that_brokers_refuse_is_told(bare: Bare, broker: SecureBroker) -> None:
    sent = connector("wrong", broker.at("SASLTLS"), CONFIG, serviceExecutionRoleArn=WRONG, **IAM, **TLS)
    reason = await failed(bare, sent)
    assert reason["code"] == "ClusterError.AuthenticationFailed", reason
    assert "another" not in reason["message"]


async def test_who_says_nothing_is_refused_by_such_brokers(bare: Bare, broker: SecureBroker) -> None:
    reason = await failed(bare, connector("plain", broker.at("PLAINTEXT"), CONFIG))
    assert reason["code"] == "CapacityError.NoNodeAvailable", reason
    reason = await failed(bare, connector("none", broker.at("SASLTLS"), CONFIG, **TLS))
    assert reason["code"].startswith("ClusterError."), reason


def test_a_role_that_is_not_known_is_refused_with_the_reason(bare: Bare, broker: SecureBroker) -> None:
    sent = connector("unknown", broker.at("SASLTLS"), CONFIG, **IAM, **TLS)
    message = bad_request(bare.sdk.create_connector, **sent)
    assert message.startswith("Invalid parameter serviceExecutionRoleArn: IAM is a role's client properties")
    assert "gateway.managed_connect_access_file" in message


def test_a_role_of_another_account_is_refused(bare: Bare, broker: SecureBroker) -> None:
    other = sdk_client(bare.endpoints[0], OTHER_KEY, OTHER_SECRET)
    sent = connector("theirs", broker.at("SASLTLS"), CONFIG, **IAM, **TLS) | {"serviceExecutionRoleArn": GOOD}
    message = bad_request(other.create_connector, **sent)
    assert (
        message
        == f"Invalid parameter serviceExecutionRoleArn: It must be a role of the caller's account, {OTHER_ACCOUNT}."
    )
