"""Accounts, quotas and pages: no account sees another's resources, however gateways race and lists change."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from keelman.api.connect.v1.dedicated_connector_service_pb2 import ListDedicatedConnectorsRequest
from keelman.api.connect.v1.dedicated_connector_service_pb2_grpc import DedicatedConnectorServiceStub
from keelman.connect.config.providers import SCOPE
from keelman.rpc.channels import channel
from support.eventually import eventually
from support.gateway.managed_connect.bare import MODEL, NOWHERE, Bare, bare_system
from support.gateway.managed_connect.cases import CONFIG, KINDS, autoscaled, legal
from support.gateway.managed_connect.world import (
    ACCOUNT,
    BUILT_IN,
    OTHER_ACCOUNT,
    OTHER_KEY,
    OTHER_SECRET,
    PROPERTIES,
    bad_request,
    connector,
    plugins,
    provisioned,
    refusal,
    sdk_client,
)

pytestmark = pytest.mark.component
CONTENT = b64encode(PROPERTIES).decode()
QUOTAS = {
    "managed-connect-max-workers": "4", "managed-connect-max-plugins": "2",
    "managed-connect-max-worker-configurations": "2",
}  # fmt: skip
LIMIT = ("TooManyRequestsException", 429, "Limit exceeded. Resource limit reached")


@pytest.fixture(scope="module")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bare]:
    """Gateways without quotas, and two with quotas."""
    folder = tmp_path_factory.mktemp("accounts")
    async with bare_system(folder, {}, QUOTAS, QUOTAS, buckets=str(folder / "buckets")) as system:
        yield system


def plugin(name: str) -> dict[str, Any]:
    """The arguments of CreateCustomPlugin."""
    location = {"s3Location": {"bucketArn": "arn:aws:s3:::bucket", "fileKey": "x.zip"}}
    return {"name": name, "contentType": "ZIP", "location": location}


def configuration(name: str) -> dict[str, Any]:
    """The arguments of CreateWorkerConfiguration."""
    return {"name": name, "propertiesFileContent": CONTENT}


def others(name: str, **more: Any) -> dict[str, Any]:
    """The arguments of CreateConnector by the other account."""
    return connector(name, NOWHERE, CONFIG, plugins=plugins(BUILT_IN.replace(ACCOUNT, OTHER_ACCOUNT)), **more)


async def test_another_account_sees_nothing_in_any_operation(bare: Bare) -> None:
    sdk, other = bare.sdk, bare.other
    there = {
        "workerConfigurationArn": sdk.create_worker_configuration(**configuration("a"))["workerConfigurationArn"],
        "customPluginArn": sdk.create_custom_plugin(**plugin("a"))["customPluginArn"],
        "connectorArn": sdk.create_connector(**connector("a", NOWHERE, CONFIG))["connectorArn"],
    }

    def failed() -> dict[str, Any] | None:
        described: dict[str, Any] = sdk.describe_connector(connectorArn=there["connectorArn"])
        return described if described["connectorState"] == "FAILED" else None

    described = await eventually(failed, what="the connector's brokers do not answer")
    assert described["stateDescription"]["code"] == "ClusterError.BrokerUnreachable"
    assert NOWHERE in described["stateDescription"]["message"]
    begun = sdk.restart_connector(connectorArn=there["connectorArn"])
    there |= {
        "connectorOperationArn": begun["connectorOperationArn"], "resourceArn": there["connectorArn"],
        "currentVersion": described["currentVersion"],
    }  # fmt: skip
    for operation in MODEL.operation_names:
        shape = MODEL.operation_model(operation).input_shape
        answered = legal(operation, there)
        call: Callable[..., Any] = getattr(other, _method(operation))
        named = [name for name in shape.members if name in KINDS]
        if not named:
            continue
        kind, status, message = refusal(call, **answered)
        assert (kind, status) == ("NotFoundException", 404), (operation, message)
    for arn in (there["customPluginArn"], there["workerConfigurationArn"]):
        assert refusal(other.list_tags_for_resource, resourceArn=arn)[0] == "NotFoundException"
    for member, value in (
        ("plugins", [{"customPlugin": {"customPluginArn": there["customPluginArn"], "revision": 1}}]),
        ("workerConfiguration", {"workerConfigurationArn": there["workerConfigurationArn"], "revision": 1}),
    ):
        answered = connector("b", NOWHERE, CONFIG, **{member: value})
        assert refusal(other.create_connector, **answered)[0] == "NotFoundException"
    assert other.list_connectors()["connectors"] == []
    assert other.list_worker_configurations()["workerConfigurations"] == []
    assert [custom_plugin["name"] for custom_plugin in other.list_custom_plugins()["customPlugins"]] == ["built-in"]
    mine = other.create_connector(**others("a"))["connectorArn"]
    assert f":{OTHER_ACCOUNT}:connector/a/" in mine, "a name is an account's own"
    other.create_worker_configuration(**configuration("a"))
    other.create_custom_plugin(**plugin("a"))
    told = sdk.describe_connector_operation(connectorOperationArn=there["connectorOperationArn"])
    assert told["connectorOperationType"] == "RESTART_CONNECTOR"
    assert [connector["connectorArn"] for connector in sdk.list_connectors()["connectors"]] == [there["connectorArn"]]


def _method(operation: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation).removeprefix("_")


def test_creates_that_race_at_two_gateways_stay_within_the_quota(bare: Bare) -> None:
    clients = [sdk_client(endpoint, OTHER_KEY, OTHER_SECRET) for endpoint in bare.endpoints[1:]]

    def raced(method: str, sent: list[dict[str, Any]]) -> list[Any]:
        """The results of calls that are sent at once, in turn to one gateway and the other."""

        def call(number: int) -> Any:
            try:
                return getattr(clients[number % 2], method)(**sent[number])
            except clients[number % 2].exceptions.TooManyRequestsException as error:
                answer = error.response
                return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Message"]

        with ThreadPoolExecutor(len(sent)) as threads:
            return list(threads.map(call, range(len(sent))))

    already = len(clients[0].list_connectors()["connectors"])
    scaled = others("scaled", capacity=autoscaled())
    first = clients[0].create_connector(**scaled)["connectorArn"]
    left = 4 - 2 - already
    told = raced("create_connector", [others(f"raced-{n}") for n in range(6)])
    assert [answer for answer in told if isinstance(answer, tuple)] == [LIMIT] * (6 - left)
    assert refusal(clients[1].create_connector, **others("more", capacity=provisioned(2))) == LIMIT
    assert len(clients[0].list_connectors()["connectors"]) == already + 1 + left
    assert clients[0].describe_connector(connectorArn=first)["capacity"] == autoscaled()
    for method, make, listed, count in (
        ("create_custom_plugin", plugin, "custom_plugins", 2),
        ("create_worker_configuration", configuration, "worker_configurations", 2),
    ):
        told = raced(method, [make(f"raced-{n}") for n in range(5)])
        refused = [outcome for outcome in told if isinstance(outcome, tuple)]
        assert set(refused) == {LIMIT}
        answer = getattr(clients[0], f"list_{listed}")()
        results = [resource for key, all_ in answer.items() if key != "ResponseMetadata" for resource in all_]
        assert len([configuration for configuration in results if configuration["name"] != "built-in"]) == count


async def test_buckets_and_secrets_are_those_of_the_account(bare: Bare) -> None:
    other, denied = bare.other, "Bucket {} is none of account 999988887777: ask this service's operator"
    theirs = plugin("scoped")
    theirs["location"]["s3Location"]["bucketArn"] = "arn:aws:s3:::logs"
    kind, status, message = refusal(other.create_custom_plugin, **theirs)
    assert (kind, status) == ("ForbiddenException", 403)
    assert message.startswith(f"Invalid parameter location.s3Location.bucketArn: {denied.format('logs')}")
    for bucket, enabled in (("logs", True), ("others-logs", True), ("logs", False)):
        logs = {"workerLogDelivery": {"s3": {"enabled": enabled, "bucket": bucket}}}
        other_request = others(f"scoped-{bucket}-{enabled}", logDelivery=logs)
        if bucket == "logs" and enabled:
            kind, _, message = refusal(other.create_connector, **other_request)
            assert kind == "ForbiddenException"
            assert message.startswith(
                f"Invalid parameter logDelivery.workerLogDelivery.s3.bucket: {denied.format(bucket)}"
            )
        else:
            other.create_connector(**other_request)
    bare.sdk.create_connector(**connector("scoped", NOWHERE, CONFIG))
    async with channel(bare.state.address) as link:
        stub: Any = DedicatedConnectorServiceStub(link)
        listed = (await stub.ListDedicatedConnectors(ListDedicatedConnectorsRequest())).dedicated_connectors
    scopes = {
        definition.spec.connector: definition.spec.properties.get(SCOPE)
        for definition in listed
        if "scoped" in definition.spec.connector
    }
    assert scopes == {
        "scoped-others-logs-True": "999988887777/*", "scoped-logs-False": "999988887777/*", "scoped": None,
    }  # fmt: skip


def test_pages_stay_as_they_are_while_others_come_and_go(bare: Bare) -> None:
    sdk = bare.sdk
    arns = {
        name: sdk.create_worker_configuration(**configuration(name))["workerConfigurationArn"]
        for name in (f"page-{n:02d}" for n in range(12))
    }
    seen: list[str] = []
    token: dict[str, str] = {}
    for step in range(100):
        answer = sdk.list_worker_configurations(namePrefix="page-", maxResults=3, **token)
        seen += [configuration["name"] for configuration in answer["workerConfigurations"]]
        sdk.create_worker_configuration(**configuration(f"page-late-{step}"))
        if step == 0:  # the page's last item, after which the token continues
            sdk.delete_worker_configuration(workerConfigurationArn=arns.pop(seen[-1]))
        if step == 1:
            gone = next(name for name in arns if name not in seen)
            sdk.delete_worker_configuration(workerConfigurationArn=arns.pop(gone))
        if step == 2:
            sdk.delete_worker_configuration(workerConfigurationArn=arns.pop(seen[0]))
        if "nextToken" not in answer or step > 20:
            break
        assert answer["nextToken"] != token.get("nextToken")
        token = {"nextToken": answer["nextToken"]}
    assert len(seen) == len(set(seen)), "nothing twice"
    assert set(arns) <= set(seen), "and all that was there from the beginning to the end"


def test_what_is_sent_is_answered(bare: Bare) -> None:
    sdk = bare.sdk
    of = sdk.create_worker_configuration(**configuration("echo"))["workerConfigurationArn"]
    vpc = {"subnets": ["subnet-1", "subnet-2"], "securityGroups": ["sg-1"]}
    cluster = {"apacheKafkaCluster": {"bootstrapServers": NOWHERE, "vpc": vpc}}
    sent = legal("CreateConnector", {"workerConfigurationArn": of}) | {"networkType": "DUAL", "kafkaCluster": cluster}
    arn = sdk.create_connector(**sent)["connectorArn"]
    described = sdk.describe_connector(connectorArn=arn)
    assert {name: described[name] for name in sent if name != "tags"} == {k: v for k, v in sent.items() if k != "tags"}
    (listed,) = sdk.list_connectors(connectorNamePrefix=sent["connectorName"])["connectors"]
    assert {"connectorConfiguration", "stateDescription", "tags"}.isdisjoint(listed)
    assert {name: listed[name] for name in listed if name in sent} == {
        name: sent[name] for name in listed if name in sent
    }


def test_a_token_is_good_for_its_own_list_alone(bare: Bare) -> None:
    sdk, other = bare.sdk, bare.other
    for name in ("token-a", "token-b", "token-c"):
        for client in (sdk, other):
            client.create_worker_configuration(**configuration(name))
    token = sdk.list_worker_configurations(namePrefix="token-", maxResults=1)["nextToken"]
    assert "token" not in token.lower()
    again = sdk.list_worker_configurations(namePrefix="token-", maxResults=2, nextToken=token)
    assert [configuration["name"][:6] for configuration in again["workerConfigurations"]] == ["token-"] * 2
    changed = token[:-2] + ("A" if token[-2] != "A" else "B") + token[-1]
    for call, value in (
        (other.list_worker_configurations, {"namePrefix": "token-", "nextToken": token}),
        (sdk.list_worker_configurations, {"nextToken": token}),
        (sdk.list_worker_configurations, {"namePrefix": "tok", "nextToken": token}),
        (sdk.list_custom_plugins, {"namePrefix": "token-", "nextToken": token}),
        (sdk.list_connectors, {"connectorNamePrefix": "token-", "nextToken": token}),
        (sdk.list_worker_configurations, {"namePrefix": "token-", "nextToken": changed}),
        (sdk.list_worker_configurations, {"namePrefix": "token-", "nextToken": "page-2"}),
    ):
        assert bad_request(call, **value) == "Invalid parameter nextToken: The token is not one of this list."
