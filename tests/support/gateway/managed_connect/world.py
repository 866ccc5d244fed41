"""The common base of the tests of the managed Connect API: a whole system, and the SDK's own client of it."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from support.cli.system import FILE, Keelman
from support.eventually import eventually

ACCOUNT, OTHER_ACCOUNT = "123450006789", "999988887777"
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
OTHER_KEY, OTHER_SECRET = "AKIDOTHER", "another/secret"
ROLE = "arn:aws:iam::123450006789:role/connect"
ACCESS_FILE = f"""
[[key]]
id = "{KEY}"
secret = "{SECRET}"
account = "{ACCOUNT}"

[[key]]
id = "{OTHER_KEY}"
secret = "{OTHER_SECRET}"
account = "{OTHER_ACCOUNT}"

[[account]]
id = "{ACCOUNT}"
secrets = ["*"]
buckets = ["*"]

[[account]]
id = "{OTHER_ACCOUNT}"
buckets = ["bucket", "others-*"]
"""
ACCESS_SETTING = "gateway.managed_connect_access_file"
REGION = "us-east-1"
BUILT_IN = f"arn:aws:kafkaconnect:{REGION}:{ACCOUNT}:custom-plugin/built-in/00000000-0000-0000-0000-000000000000-1"
UNKNOWN_UUID = "abc12345-abcd-4444-a8b9-123456f513ed-2"
PROPERTIES = b"key.converter=org.apache.kafka.connect.storage.StringConverter\n" + (
    b"value.converter=org.apache.kafka.connect.storage.StringConverter\n"
)


def sdk_client(endpoint: str, key: str = KEY, secret: str = SECRET, region: str = REGION) -> Any:
    """The SDK's client; it tries each call once."""
    session = botocore.session.Session()
    return session.create_client(
        "kafkaconnect", endpoint_url=endpoint, region_name=region, aws_access_key_id=key, aws_secret_access_key=secret,
        config=Config(retries={"total_max_attempts": 1}, parameter_validation=True, read_timeout=300),
    )  # fmt: skip


def tried_twice(call: Any, **members: Any) -> tuple[Any, Any]:
    """The answers to a call whose first answer got lost: an SDK sends it again as another try."""
    events, invocation, attempts = call.__self__.meta.events, str(uuid.uuid4()), itertools.count(1)

    def as_one(request: Any, **_: Any) -> None:
        for name, value in (("invocation-id", invocation), ("request", f"attempt={next(attempts)}")):
            del request.headers[f"amz-sdk-{name}"]
            request.headers[f"amz-sdk-{name}"] = value

    events.register("before-send.kafkaconnect", as_one)
    try:
        return call(**members), call(**members)
    finally:
        events.unregister("before-send.kafkaconnect", as_one)


def arn(kind: str, name: str, account: str = ACCOUNT, unique: str = UNKNOWN_UUID, region: str = REGION) -> str:
    """An ARN as the service writes it."""
    return f"arn:aws:kafkaconnect:{region}:{account}:{kind}/{name}/{unique}"


def plugins(of: str = BUILT_IN, revision: int = 1) -> list[dict[str, Any]]:
    """The member `plugins`."""
    return [{"customPlugin": {"customPluginArn": of, "revision": revision}}]


def provisioned(workers: int = 1, mcus: int = 1) -> dict[str, Any]:
    """The member `capacity`."""
    return {"provisionedCapacity": {"workerCount": workers, "mcuCount": mcus}}


def connector(name: str, bootstrap: str, config: dict[str, str], **more: Any) -> dict[str, Any]:
    """The arguments of CreateConnector."""
    fields = {
        "connectorName": name,
        "connectorConfiguration": config,
        "capacity": provisioned(),
        "kafkaCluster": {
            "apacheKafkaCluster": {
                "bootstrapServers": bootstrap,
                "vpc": {"subnets": ["subnet-1"], "securityGroups": []},
            }
        },
        "kafkaClusterClientAuthentication": {"authenticationType": "NONE"},
        "kafkaClusterEncryptionInTransit": {"encryptionType": "PLAINTEXT"},
        "kafkaConnectVersion": "3.7.x",
        "plugins": plugins(),
        "serviceExecutionRoleArn": ROLE,
    }
    return {key: value for key, value in (fields | more).items() if value is not None}


def file_source(file: Path, topic: str) -> dict[str, str]:
    """The configuration of a source that copies a file's lines."""
    return {"connector.class": f"{FILE}SourceConnector", "file": str(file), "topic": topic, "tasks.max": "1"}


def refusal(work: Any, **members: Any) -> tuple[str, int, str]:
    """The error's code, the status and the message with which a call ends."""
    with pytest.raises(ClientError) as caught:
        work(**members)
    answer = caught.value.response
    assert answer["ResponseMetadata"]["RequestId"]
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Message"]


def bad_request(work: Any, **members: Any) -> str:
    """The message of a call that is refused with 400."""
    code, status, message = refusal(work, **members)
    assert (code, status) == ("BadRequestException", 400), (code, status, message)
    return message


@dataclass(frozen=True, slots=True)
class World:
    """A system with a broker, and clients of two accounts."""

    keelman: Keelman
    endpoint: str
    bootstrap: str
    sdk: Any
    other: Any

    async def state(self, of: str, expected: str, *, seconds: float = 300.0) -> dict[str, Any]:
        """A connector's description, once it is in a state. Ends early if it has failed."""

        def reached() -> dict[str, Any] | None:
            told: dict[str, Any] = self.sdk.describe_connector(connectorArn=of)
            assert told["connectorState"] != "FAILED" or expected == "FAILED", told
            return told if told["connectorState"] == expected else None

        state: dict[str, Any] = await eventually(reached, seconds=seconds, what=f"{of} is {expected}")
        return state

    async def gone(self, of: str, *, seconds: float = 300.0) -> None:
        """Waits until a connector no longer exists."""

        def is_gone() -> bool:
            try:
                told = self.sdk.describe_connector(connectorArn=of)
            except self.sdk.exceptions.NotFoundException:
                return True
            assert told["connectorState"] == "DELETING", told
            return False

        await eventually(is_gone, seconds=seconds, what=f"{of} is gone")

    async def operation(self, of: str, expected: str, *, seconds: float = 300.0) -> dict[str, Any]:
        """An operation's description, once it is in a state."""

        def reached() -> dict[str, Any] | None:
            told: dict[str, Any] = self.sdk.describe_connector_operation(connectorOperationArn=of)
            return told if told["connectorOperationState"] == expected else None

        operation: dict[str, Any] = await eventually(reached, seconds=seconds, what=f"{of} is {expected}")
        return operation


@asynccontextmanager
async def managed_connect_world(folder: Path, *settings: str, roles: str = "") -> AsyncIterator[World]:
    """A system that is ended with the block, with its broker ready.

    `roles`: the lines in the file of access keys after keys and accounts.
    """
    folder.mkdir(exist_ok=True)
    access = folder / "access.toml"
    access.write_text(ACCESS_FILE + roles)
    keelman = Keelman(folder / "home")
    given = (f"{ACCESS_SETTING}={access}", "state.connector_policy=open", *settings)  # files of tests are anywhere
    words = [word for setting in given for word in ("--set", setting)]
    try:
        await keelman.ok("up", "--detach", "--free-ports", *words)
        brokers = (await keelman.item("broker-clusters", "default"))["status"]["bootstrap_servers"]
        endpoint = keelman.system["http"]
        yield World(
            keelman, endpoint, brokers, sdk_client(endpoint), sdk_client(endpoint, OTHER_KEY, OTHER_SECRET)
        )  # fmt: skip
    finally:
        await keelman.cleaned()
