"""Two accounts of the managed Connect API: by no way that its credentials open does one reach what is the other's."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import pytest_asyncio
from botocore.exceptions import ClientError

from keelman.api.connect.v1 import dedicated_connector_service_pb2 as dedicated
from keelman.api.connect.v1.worker_cluster_service_pb2 import ListWorkerClustersRequest
from keelman.connect.config.providers import SCOPE
from keelman.model.access.roles import token_digest
from keelman.model.errors import KeelmanError
from keelman.rpc.channels import channel
from keelman.rpc.generated import stub_of
from support.eventually import eventually
from support.gateway.managed_connect.bare import MODEL, Bare, Raw, Told, Wire, bare_system
from support.gateway.managed_connect.cases import CONFIG, KINDS, legal
from support.gateway.managed_connect.world import (
    ACCOUNT,
    BUILT_IN,
    OTHER_ACCOUNT,
    OTHER_KEY,
    OTHER_SECRET,
    PROPERTIES,
    REGION,
    connector,
    plugins,
    refusal,
)

pytestmark = pytest.mark.component
MINE, THEIRS = OTHER_ACCOUNT, ACCOUNT
NOT_FOUND, FORBIDDEN = ("NotFoundException", 404), ("ForbiddenException", 403)
SHARED_OFFSETS = "offset.storage.topic=their-offsets\n"
ROLE = f"""
[[role]]
arn = "arn:aws:iam::{THEIRS}:role/connect"
client_properties = {{ "sasl.mechanism" = "PLAIN" }}
"""
IAM = {
    "kafkaClusterClientAuthentication": {"authenticationType": "IAM"},
    "kafkaClusterEncryptionInTransit": {"encryptionType": "TLS"},
}
ADMIN = "admin-of-this-test"


@dataclass(frozen=True)
class Accounts:
    """The account that tries (A), and ARNs of the other's resources (B) by the names of members."""

    bare: Bare
    bootstrap: str
    raw: Raw
    their: Mapping[str, str]
    plain: str
    """The ARN of another connector of B, without a worker configuration."""
    mine: str
    """The ARN of A's own connector."""

    @property
    def sdk(self) -> Any:
        return self.bare.other

    def connector(self, name: str, **more: Any) -> dict[str, Any]:
        """The arguments of CreateConnector by A."""
        fields = {"plugins": plugins(BUILT_IN.replace(THEIRS, MINE)), **more}
        return connector(name, self.bootstrap, {**CONFIG, **fields.pop("config", {})}, **fields)

    def seen_by_owner(self) -> str:
        """All that B can read of its own."""
        sdk, arn = self.bare.sdk, self.their
        answers = [
            sdk.describe_connector(connectorArn=arn["connectorArn"]),
            sdk.describe_custom_plugin(customPluginArn=arn["customPluginArn"]),
            sdk.describe_worker_configuration(workerConfigurationArn=arn["workerConfigurationArn"]),
            sdk.list_connector_operations(connectorArn=arn["connectorArn"]),
            *(sdk.list_tags_for_resource(resourceArn=arn[kind]) for kind in arn if kind in TAGGED),
            sdk.list_connectors(), sdk.list_custom_plugins(), sdk.list_worker_configurations(),
        ]  # fmt: skip
        for answer in answers:
            del answer["ResponseMetadata"]
        return json.dumps(answers, default=str, sort_keys=True)


TAGGED = ("connectorArn", "customPluginArn", "workerConfigurationArn")


def configuration(name: str, more: str = "") -> dict[str, Any]:
    """The arguments of CreateWorkerConfiguration."""
    content = PROPERTIES + more.encode()
    return {"name": name, "propertiesFileContent": base64.b64encode(content).decode(), "tags": {"whose": "b-tag"}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def accounts(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Accounts]:
    """A system without nodes; B has one of everything."""
    folder: Path = tmp_path_factory.mktemp("accounts")
    access = folder / "callers.toml"
    access.write_text(f"[[token]]\nsha256 = '{token_digest(ADMIN)}'\nname = 'admin'\nrole = 'admin'\n")
    (folder / "buckets" / "their-bucket").mkdir(parents=True)
    settings = {"access-file": str(access)}
    async with bare_system(folder, settings, roles=ROLE, buckets=str(folder / "buckets")) as bare:
        b = bare.sdk
        location = {"s3Location": {"bucketArn": "arn:aws:s3:::their-bucket", "fileKey": "b-plugin.zip"}}
        content = configuration("b-configuration", SHARED_OFFSETS)
        their = {
            "workerConfigurationArn": b.create_worker_configuration(**content)["workerConfigurationArn"],
            "customPluginArn": b.create_custom_plugin(
                name="b-plugin", contentType="ZIP", location=location, tags={"whose": "b-tag"}
            )["customPluginArn"],
        }
        revision = {"workerConfigurationArn": their["workerConfigurationArn"], "revision": 1}
        secret = {"b.password": "${secrets:prod/b:password}", "b.plain": "b-literal"}
        sent = connector("b-connector", bootstrap, CONFIG | secret, workerConfiguration=revision, tags={"whose": "b"})
        their["connectorArn"] = b.create_connector(**sent)["connectorArn"]
        plain = b.create_connector(**connector("b-plain", bootstrap, CONFIG))["connectorArn"]
        mine = bare.other.create_connector(
            **connector("a-connector", bootstrap, CONFIG, plugins=plugins(BUILT_IN.replace(THEIRS, MINE)))
        )["connectorArn"]

        def failed(sdk: Any, arn: str) -> Any:
            described = sdk.describe_connector(connectorArn=arn)
            return described if described["connectorState"] == "FAILED" else None

        for sdk, arn in ((b, plain), (b, their["connectorArn"]), (bare.other, mine)):
            described = await eventually(lambda sdk=sdk, arn=arn: failed(sdk, arn), what="no node is there")
            assert described["stateDescription"]["code"] == "CapacityError.NoNodeAvailable", described
            if arn == their["connectorArn"]:
                begun = b.restart_connector(connectorArn=arn)["connectorOperationArn"]
                their |= {"connectorOperationArn": begun, "currentVersion": described["currentVersion"]}
        await eventually(lambda: failed(b, their["connectorArn"]), what="it has failed again")
        their["resourceArn"] = their["connectorArn"]
        raw = Raw(bare.endpoints[0], OTHER_KEY, OTHER_SECRET)
        yield Accounts(bare, bootstrap, raw, their, plain, mine)
        raw.close()


@pytest.fixture(autouse=True)
def untouched(accounts: Accounts) -> AsyncIterator[None]:
    """What B has is the same after each test."""
    before = accounts.seen_by_owner()
    yield  # type: ignore[misc]
    assert accounts.seen_by_owner() == before


def calls_with_an_arn(there: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Each operation with ARNs, as legal as it can be."""
    operations = [(name, MODEL.operation_model(name).input_shape.members) for name in MODEL.operation_names]
    return [(name, legal(name, there)) for name, members in operations if set(members) & set(KINDS)]


def method(sdk: Any, operation: str) -> Callable[..., Any]:
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation).removeprefix("_")
    call: Callable[..., Any] = getattr(sdk, name)
    return call


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("as it is", lambda arn: arn),
        ("under A's number", lambda arn: arn.replace(THEIRS, MINE)),
        ("under A's number and name", lambda arn: arn.replace(THEIRS, MINE).replace("/b-", "/a-")),
        ("in another region", lambda arn: arn.replace(THEIRS, MINE).replace(REGION, "eu-west-1")),
        ("in another partition", lambda arn: arn.replace(THEIRS, MINE).replace("arn:aws:", "arn:aws-cn:")),
        ("with another number", lambda arn: arn.replace(THEIRS, MINE).replace("-2", "-3")),
    ],
)
def test_arns(accounts: Accounts, what: str, changed: Callable[[str], str]) -> None:
    there = {member: changed(text) if text.startswith("arn:") else text for member, text in accounts.their.items()}
    for operation, sent in calls_with_an_arn(there):
        kind, status, message = refusal(method(accounts.sdk, operation), **sent)
        assert (kind, status) == NOT_FOUND, (operation, what, message)
        assert "b-literal" not in message


@pytest.mark.parametrize("kind", TAGGED)
def test_tags(accounts: Accounts, kind: str) -> None:
    for arn in (accounts.their[kind], accounts.their[kind].replace(THEIRS, MINE)):
        for call, more in (
            (accounts.sdk.list_tags_for_resource, {}),
            (accounts.sdk.tag_resource, {"tags": {"whose": "a"}}),
            (accounts.sdk.untag_resource, {"tagKeys": ["whose"]}),
        ):
            assert refusal(call, resourceArn=arn, **more)[:2] == NOT_FOUND


def test_operations_under_ones_own_connector(accounts: Accounts) -> None:
    uid = accounts.their["connectorOperationArn"].rpartition("/")[2]
    mine = accounts.mine.replace(":connector/", ":connector-operation/")
    assert refusal(accounts.sdk.describe_connector_operation, connectorOperationArn=f"{mine}/{uid}")[:2] == NOT_FOUND
    assert accounts.sdk.list_connector_operations(connectorArn=accounts.mine)["connectorOperations"] == []


def test_lists_with_tokens_and_prefixes(accounts: Accounts) -> None:
    a, b = accounts.sdk, accounts.bare.sdk
    arns = accounts.their
    spares = [b.create_worker_configuration(**configuration(f"b-spare-{n}"))["workerConfigurationArn"] for n in (0, 1)]
    lists = (
        ("list_connectors", "connectorNamePrefix", "/v1/connectors", arns["connectorArn"], {}),
        ("list_custom_plugins", "namePrefix", "/v1/custom-plugins", arns["customPluginArn"], {}),
        ("list_worker_configurations", "namePrefix", "/v1/worker-configurations", arns["workerConfigurationArn"], {}),
        ("list_connector_operations", "", f"/v1/connectors/{accounts.mine}/operations", arns["connectorOperationArn"],
         {"connectorArn": accounts.mine}),
    )  # fmt: skip
    for name, prefix, path, arn, more in lists:
        uuid = arn.split("/")[2].rpartition("-")[0].replace("-", "")
        keys = (f"mc-{uuid}", arn, arn.rpartition("/")[2], "0", "~", f"mc-{uuid[:-1]}")
        own = {"list_connectors": b.list_connectors, "list_worker_configurations": b.list_worker_configurations}
        given = own[name](maxResults=1).get("nextToken") if name in own else None
        for token in (*(forged(MINE, path, key) for key in keys), *filter(None, [given])):
            with_token = {**more, "nextToken": token}
            answer = answered(getattr(a, name), **with_token)
            assert THEIRS not in answer, (name, token)
            assert "b-" not in answer, (name, token)
        for text in filter(None, ("", "b-", "b-connector", "%", "*")):
            answer = getattr(a, name)(**more, **({prefix: text} if prefix else {}))
            assert THEIRS not in json.dumps(answer, default=str), (name, text)
    for arn in spares:
        b.delete_worker_configuration(workerConfigurationArn=arn)


def answered(call: Callable[..., Any], **members: Any) -> str:
    """What a call answers; nothing if it is refused: the error has the token in it."""
    try:
        answer = call(**members)
    except ClientError as error:
        if error.response["Error"]["Code"] != "BadRequestException":
            raise
        return ""
    return json.dumps({name: value for name, value in answer.items() if name != "ResponseMetadata"}, default=str)


def forged(account: str, path: str, key: str) -> str:
    """A page token as this version writes them, which anybody can who reads its source."""
    check = hashlib.sha256("\0".join((account, path, "", key)).encode()).digest()[:8]
    return base64.urlsafe_b64encode(check + key.encode()).decode()


def test_names_that_the_other_has(accounts: Accounts) -> None:
    a = accounts.sdk
    made = a.create_worker_configuration(**configuration("b-configuration"))["workerConfigurationArn"]
    assert f":{MINE}:" in made
    a.delete_worker_configuration(workerConfigurationArn=made)
    arn = a.create_connector(**accounts.connector("b-connector"))["connectorArn"]
    assert f":{MINE}:connector/b-connector/" in arn
    assert "b-literal" not in json.dumps(a.describe_connector(connectorArn=arn), default=str)
    a.delete_connector(connectorArn=arn)


def test_plugins_and_configurations_as_ones_own(accounts: Accounts) -> None:
    for account in (THEIRS, MINE):
        plugin = accounts.their["customPluginArn"].replace(THEIRS, account)
        revision = accounts.their["workerConfigurationArn"].replace(THEIRS, account)
        uses = {
            "plugins": plugins(plugin), "workerConfiguration": {"workerConfigurationArn": revision, "revision": 1},
        }  # fmt: skip
        version = accounts.sdk.describe_connector(connectorArn=accounts.mine)["currentVersion"]
        for member, value in uses.items():
            kind, status, _ = refusal(accounts.sdk.create_connector, **accounts.connector("uses", **{member: value}))
            assert (kind, status) == NOT_FOUND, member
            change = {"connectorArn": accounts.mine, "currentVersion": version, member: value}
            assert refusal(accounts.sdk.update_connector, **change)[:2] == NOT_FOUND, member


def test_buckets_and_roles(accounts: Accounts) -> None:
    location = {"s3Location": {"bucketArn": "arn:aws:s3:::their-bucket", "fileKey": "b-plugin.zip"}}
    sent = {"name": "theirs", "contentType": "ZIP", "location": location}
    assert refusal(accounts.sdk.create_custom_plugin, **sent)[:2] == FORBIDDEN
    logs = {"workerLogDelivery": {"s3": {"enabled": True, "bucket": "their-bucket"}}}
    assert refusal(accounts.sdk.create_connector, **accounts.connector("logs", logDelivery=logs))[:2] == FORBIDDEN
    with_role = accounts.connector("role", **IAM, serviceExecutionRoleArn=f"arn:aws:iam::{THEIRS}:role/connect")
    kind, _, message = refusal(accounts.sdk.create_connector, **with_role)
    assert (kind, message) == (
        "BadRequestException",
        f"Invalid parameter serviceExecutionRoleArn: It must be a role of the caller's account, {MINE}.",
    )


def storage_of(arn: str, what: str) -> str:
    """A topic of a connector's workers."""
    _, name, unique = arn.split(":", 5)[5].split("/")
    return f"__amazon_msk_connect_{what}_{name}_{unique}"


@pytest.mark.parametrize("what", ["configs", "offsets", "status"])
def test_topics_of_storage_as_ones_own(accounts: Accounts, what: str) -> None:
    topic = storage_of(accounts.their["connectorArn"], what)
    for key in ("config.storage.topic", "status.storage.topic", "group.id", "bootstrap.servers"):
        sent = configuration("storage", f"{key}={topic}\n")
        kind, _, message = refusal(accounts.sdk.create_worker_configuration, **sent)
        assert (kind, key in message) == ("BadRequestException", True), message
    logs = {"workerLogDelivery": {"firehose": {"enabled": True, "deliveryStream": topic}}}
    kind, _, message = refusal(accounts.sdk.create_connector, **accounts.connector(f"logs-{what}", logDelivery=logs))
    assert (kind, "internal" in message) == ("BadRequestException", True), message


def test_the_offset_topic_as_ones_own(accounts: Accounts) -> None:
    """Offsets are stored by connectors' names: a worker with that topic could change those of another account."""
    a = accounts.sdk
    content = configuration("a-offsets", "offset.storage.topic=a-offsets\n")
    own = {"workerConfigurationArn": a.create_worker_configuration(**content)["workerConfigurationArn"], "revision": 1}
    for name in ("a-shares", "a-shares-too"):  # within an account that is legal
        a.create_connector(**accounts.connector(name, workerConfiguration=own))
    for name, topic in (("shared", "their-offsets"), ("default", storage_of(accounts.plain, "offsets"))):
        sent = configuration(name, f"offset.storage.topic={topic}\n")
        created = accounts.sdk.create_worker_configuration(**sent)["workerConfigurationArn"]
        revision = {"workerConfigurationArn": created, "revision": 1}
        uses = accounts.connector(name, workerConfiguration=revision)
        kind, _, message = refusal(accounts.sdk.create_connector, **uses)
        wanted = f"'{topic}' is a topic of the resource on the same broker cluster: give another topic"
        assert (kind, message.partition("topic: ")[2]) == ("BadRequestException", wanted), "it does not say whose"
        version = accounts.sdk.describe_connector(connectorArn=accounts.mine)["currentVersion"]
        change = {"connectorArn": accounts.mine, "currentVersion": version, "workerConfiguration": revision}
        assert refusal(accounts.sdk.update_connector, **change)[0] == "BadRequestException"


async def test_secrets(accounts: Accounts) -> None:
    """The workers' scope is the account's, whatever their configuration says."""
    wide = f"{SCOPE}=*\nconfig.providers=s\nconfig.providers.s.class=keelman.SecretsConfigProvider\n"
    sent = configuration("secrets", f"{wide}config.providers.s.param.names=*\n")
    arn = accounts.sdk.create_worker_configuration(**sent)["workerConfigurationArn"]
    revision = {"workerConfigurationArn": arn, "revision": 1}
    accounts.sdk.create_connector(**accounts.connector("secrets", workerConfiguration=revision))

    async def scopes() -> list[str]:
        async with channel(accounts.bare.state.address) as link:
            clusters: Any = stub_of(link, "connect", "worker_cluster")
            listed = (await clusters.ListWorkerClusters(ListWorkerClustersRequest())).worker_clusters
        return [c.spec.properties[SCOPE] for c in listed if "config.providers.s.class" in c.spec.properties]

    assert await eventually(scopes, what="its workers are planned") == [f"{MINE}/*"]


def test_signatures(accounts: Accounts) -> None:
    """A request that A has signed is A's, whatever its path or its credential say."""
    theirs = Wire.of("DescribeConnector", {"connectorArn": accounts.their["connectorArn"]})
    mine = Wire.of("DescribeConnector", {"connectorArn": accounts.mine})
    assert accounts.raw.send(mine).status == 200
    for path in (theirs.path, theirs.path.replace("%3A", ":"), theirs.path.replace("%", "%25"), f"{mine.path}/../x"):
        told: Told = accounts.raw.send_bytes("GET", path, "", b"")
        assert told.status in (400, 403, 404), (path, told)
        assert "b-literal" not in str(told.body)
    as_b = Raw(accounts.bare.endpoints[0], "AKIDEXAMPLE", OTHER_SECRET)
    assert as_b.send(theirs).status == 403
    as_b.close()


async def test_other_apis(accounts: Accounts) -> None:
    """The key and its secret open no other API: not as a token, not as a password, not as a signature."""
    cluster = "mc-" + accounts.their["connectorArn"].split("/")[2].rpartition("-")[0].replace("-", "")
    tokens = (OTHER_SECRET, OTHER_KEY, f"{OTHER_KEY}:{OTHER_SECRET}", MINE)
    paths = (
        "/clusters", f"/clusters/{cluster}/connectors", f"/clusters/{cluster}/connectors/b-connector/config",
        f"/clusters/{cluster}/connectors/b-connector/logs", f"/clusters/{cluster}/connectors/b-connector/offsets",
        "/v0/workers", "/v0/connectors", "/v0/files", f"/v0/logs/workers/{cluster}", "/v0/inspection/configurator",
        "/metrics", "/federate",
    )  # fmt: skip
    async with httpx.AsyncClient(base_url=accounts.bare.endpoints[0], trust_env=False) as http:
        for path in paths:
            assert accounts.raw.send_bytes("GET", path, "", b"").status in (401, 403, 404), path
            for token in tokens:
                for auth in (("any", token), (OTHER_KEY, token)):
                    answer = await http.get(path, auth=auth)
                    assert answer.status_code in (401, 403, 404), (path, answer.text)
                answer = await http.get(path, headers={"Authorization": f"Bearer {token}"})
                assert answer.status_code in (401, 403, 404), (path, answer.text)
        assert (await http.get(paths[0], auth=("any", ADMIN))).status_code in (200, 404)
    for token in tokens:
        async with channel(accounts.bare.gateways[0].address, token=token) as link:
            connectors: Any = stub_of(link, "connect", "dedicated_connector")
            with pytest.raises((KeelmanError, grpc.RpcError)) as caught:
                await connectors.ListDedicatedConnectors(dedicated.ListDedicatedConnectorsRequest())
            assert "UNAUTHENTICATED" in repr(caught.value).upper()
