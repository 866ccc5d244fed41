"""The gateway checks members that the SDK does not: each member of each operation of its model, one wrong at a time."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from support.gateway.managed_connect.bare import MODEL, NOWHERE, Bare, Raw, Wire, bare_system
from support.gateway.managed_connect.cases import CONFIG, Case, all_cases, autoscaled, legal, unknown_arn
from support.gateway.managed_connect.world import PROPERTIES, ROLE, connector, plugins, provisioned

pytestmark = pytest.mark.component
CASES = all_cases()
There = dict[str, str]


@pytest.fixture(scope="module")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bare]:
    async with bare_system(tmp_path_factory.mktemp("bare")) as system:
        yield system


@pytest.fixture(scope="module")
def there(bare: Bare) -> There:
    """ARNs of existing resources, by the member that names each."""
    sdk = bare.sdk
    content = b64encode(PROPERTIES).decode()
    of = sdk.create_worker_configuration(name="there", propertiesFileContent=content)["workerConfigurationArn"]
    used = {"workerConfigurationArn": of, "revision": 1}
    connector_arn = sdk.create_connector(**connector("there", NOWHERE, CONFIG, workerConfiguration=used))[
        "connectorArn"
    ]
    version = sdk.describe_connector(connectorArn=connector_arn)["currentVersion"]
    plugin = plugins()[0]["customPlugin"]["customPluginArn"]
    return {
        "connectorArn": connector_arn, "resourceArn": connector_arn, "workerConfigurationArn": of,
        "customPluginArn": plugin, "currentVersion": version,
    }  # fmt: skip


@pytest.fixture(scope="module")
def raw(bare: Bare) -> Iterator[Raw]:
    raw = Raw(bare.endpoints[0])
    yield raw
    raw.close()


def refused(raw: Raw, case: Case, there: There) -> str:
    """The message of a case, which must be refused."""
    answer = raw.send(case.make(Wire.of(case.operation, legal(case.operation, there))))
    kind = {400: "BadRequestException", 404: "NotFoundException"}[case.status]
    assert (answer.status, answer.kind) == (case.status, kind), answer
    assert kind in {error_shape.name for error_shape in MODEL.operation_model(case.operation).error_shapes}
    return answer.message


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_member_that_is_wrong_is_named(raw: Raw, there: There, case: Case) -> None:
    message = refused(raw, case, there)
    if case.status == 404:
        assert message.startswith("The specified resource does not exist: arn:aws:kafkaconnect:"), message
    elif case.member == "body":
        assert message == "The request's body must be a JSON object."
    else:
        begins = f"Invalid parameter {case.member}"
        assert message.startswith(begins), message
        assert message[len(begins)] in ":[.", message


def test_the_walk_comes_by_every_member() -> None:
    walked = {(case.operation, case.member.partition("[")[0]) for case in CASES}
    every = {
        (name, member) for name in MODEL.operation_names for member in members(MODEL.operation_model(name).input_shape)
    }
    missed = {member for operation, member in every - walked}
    assert missed == {"connectorNamePrefix", "namePrefix"} - {member for _, member in walked}, (
        "of which nothing is wrong"
    )


def members(shape: Any, *path: str) -> Iterator[str]:
    """The paths of all members within a structure."""
    for name, member in shape.members.items():
        yield ".".join((*path, name))
        if member.type_name == "structure":
            yield from members(member, *path, name)


def create(capacity: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """CreateConnector's members, some of them illegal together."""
    return connector("together", NOWHERE, CONFIG, **more, **({} if capacity is None else {"capacity": capacity}))


def scaled(**more: Any) -> dict[str, Any]:
    """A capacity, some of whose members are illegal together."""
    return {"autoScaling": autoscaled()["autoScaling"] | more}


def logs(**targets: Any) -> dict[str, Any]:
    """The targets of log delivery."""
    return {"workerLogDelivery": targets}


IAM = {"authenticationType": "IAM"}
NOT_TOGETHER = [
    ("capacity", create({})),
    ("capacity", create(autoscaled() | provisioned())),
    ("capacity.autoScaling.minWorkerCount", create(scaled(minWorkerCount=3))),
    ("capacity.autoScaling.maxAutoscalingTaskCount", create(scaled(maxAutoscalingTaskCount=1))),
    ("capacity.autoScaling.scaleInPolicy", create(scaled(scaleInPolicy={"cpuUtilizationPercentage": 80}))),
    ("connectorConfiguration", create(connectorConfiguration={"topic": "t"})),
    ("connectorName", create(connectorName="a/b")),
    ("connectorName", create(connectorName="ü")),
    ("kafkaCluster.apacheKafkaCluster.bootstrapServers", create() | connector("x", "no port", CONFIG)),
    ("kafkaClusterEncryptionInTransit.encryptionType", create(kafkaClusterClientAuthentication=IAM)),
    (
        "serviceExecutionRoleArn",
        create(
            kafkaClusterClientAuthentication=IAM, kafkaClusterEncryptionInTransit={"encryptionType": "TLS"},
            serviceExecutionRoleArn=ROLE + "/none",
        ),
    ),
    *(
        (f"logDelivery.workerLogDelivery.{target}.{member}", create(logDelivery=logs(**{target: {"enabled": True}})))
        for target, member in (("cloudWatchLogs", "logGroup"), ("firehose", "deliveryStream"), ("s3", "bucket"))
    ),
    (
        "logDelivery.workerLogDelivery.s3",
        create(logDelivery=logs(s3={"enabled": True, "bucket": "logs"})),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("member", "fields"), NOT_TOGETHER, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_not_legal_together_is_named(raw: Raw, member: str, fields: dict[str, Any]) -> None:
    answer = raw.send(Wire.of("CreateConnector", fields))
    assert (answer.status, answer.kind) == (400, "BadRequestException"), answer
    assert answer.message.startswith(f"Invalid parameter {member}"), answer.message


@pytest.mark.parametrize(
    ("member", "status", "fields"),
    [
        ("", 400, {}),
        ("", 400, {"skipHealthValidation": True}),
        ("", 400, {"connectorConfiguration": CONFIG, "capacity": provisioned(2)}),
        ("useDefaultWorkerConfiguration", 400, {"useDefaultWorkerConfiguration": True, "workerConfiguration": ...}),
        ("connectorConfiguration", 400, {"connectorConfiguration": CONFIG}),
        ("connectorConfiguration", 400, {"connectorConfiguration": {"topic": "t"}}),
        ("connectorConfiguration", 400, {"connectorConfiguration": CONFIG | {"connector.class": "Other"}}),
        ("provisionedCapacity", 400, {"capacity": provisioned()}),
        ("plugins", 400, {"plugins": plugins()}),
        ("workerConfiguration", 400, {"workerConfiguration": ...}),
        ("404", 404, {"plugins": plugins(unknown_arn("custom-plugin"))}),
        ("404", 404, {"plugins": plugins(revision=2)}),
        ("404", 404, {"workerConfiguration": {"workerConfigurationArn": ..., "revision": 2}}),
        ("404", 404, {"workerConfiguration": {
            "workerConfigurationArn": unknown_arn("worker-configuration"), "revision": 1}}),
    ],
)  # fmt: skip
def test_updates_that_cannot_be(raw: Raw, there: There, member: str, status: int, fields: dict[str, Any]) -> None:
    ref = {"workerConfigurationArn": there["workerConfigurationArn"], "revision": 1}
    if "workerConfiguration" in fields:
        sent = fields["workerConfiguration"]
        present_ref = ref if sent is ... else {key: ref[key] if value is ... else value for key, value in sent.items()}
        fields = fields | {"workerConfiguration": present_ref}
    target = {"connectorArn": there["connectorArn"], "currentVersion": there["currentVersion"]}
    answer = raw.send(Wire.of("UpdateConnector", target | fields))
    assert answer.status == status, answer
    if status == 400:
        assert answer.message.startswith(f"Invalid parameter {member}: " if member else "Exactly one of "), (
            answer.message
        )


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("not base64!", "The content is not base64"),
        (b64encode(b"key.converter=x\n").decode(), "value.converter"),
        (b64encode(PROPERTIES + b"group.id=mine\n").decode(), "group.id"),
        (b64encode(PROPERTIES + b"producer.linger.ms=5\n").decode(), "producer.linger.ms"),
        (b64encode(PROPERTIES + b"\\u0072est.port : 1\n").decode(), "rest.port"),
    ],
)
def test_worker_configurations_that_cannot_be(raw: Raw, content: str, named: str) -> None:
    answer = raw.send(Wire.of("CreateWorkerConfiguration", {"name": "wrong", "propertiesFileContent": content}))
    assert answer.status == 400, answer
    assert answer.message.startswith("Invalid parameter propertiesFileContent: "), answer.message
    assert named in answer.message


def test_a_body_that_is_no_json(raw: Raw) -> None:
    for content in (b"{", b"\xff", b"{} {}", b"nul"):
        answer = raw.send_bytes("POST", "/v1/connectors", "", content)
        assert (answer.status, answer.message) == (400, "The request's body is not JSON."), answer


def test_what_was_refused_is_not_there(bare: Bare) -> None:
    sdk = bare.sdk
    assert [connector["connectorName"] for connector in sdk.list_connectors()["connectors"]] == ["there"]
    assert [configuration["name"] for configuration in sdk.list_worker_configurations()["workerConfigurations"]] == [
        "there"
    ]
    assert [custom_plugin["name"] for custom_plugin in sdk.list_custom_plugins()["customPlugins"]] == ["built-in"]
    (answer,) = sdk.list_connectors()["connectors"]
    assert sdk.list_tags_for_resource(resourceArn=answer["connectorArn"])["tags"] == {}
