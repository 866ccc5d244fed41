"""Connectors that copy in a specially prepared installation.

Brokers require a role's token, and a bucket of an S3 server holds a jar.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import zipfile
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import obstore
import pytest

from keelman.kafka.security.oauth import ALLOWED_KEY
from support.brokers.secure_broker import SecureBroker
from support.cli.system import FILE, STRING
from support.eventually import eventually
from support.gateway.managed_connect.world import (
    ROLE,
    World,
    connector,
    file_source,
    managed_connect_world,
    plugins,
    refusal,
)
from support.java.kit import needs_java, packed
from support.kafka.topics import messages
from support.servers.object_store import KEY, SECRET, object_store
from support.servers.token_server import token_server

pytestmark = [pytest.mark.component, pytest.mark.slow]
AS_ROLE = {
    "kafkaClusterClientAuthentication": {"authenticationType": "IAM"},
    "kafkaClusterEncryptionInTransit": {"encryptionType": "TLS"},
}
RECORDS = 20


def role(properties: Mapping[str, str]) -> str:
    """A role in the file of access keys."""
    lines = "\n".join(f"{json.dumps(key)} = {json.dumps(text)}" for key, text in properties.items())
    return f"\n[[role]]\narn = {json.dumps(ROLE)}\n[role.client_properties]\n{lines}\n"


async def test_connectors_copy_by_the_tokens_of_their_role(broker: SecureBroker, tmp_path: Path) -> None:
    path, output = tmp_path / "in.txt", tmp_path / "out.txt"
    path.write_text("one\ntwo\n")
    with token_server() as tokens:
        properties = broker.with_tokens_of(tokens.url) | {ALLOWED_KEY: tokens.url}
        servers = properties.pop("bootstrap.servers")
        setting = f"state.oauth_urls={tokens.url}"
        async with managed_connect_world(tmp_path / "system", setting, roles=role(properties)) as world:
            source = connector("by-token", servers, file_source(path, "by-token"), **AS_ROLE)
            sink = {
                "connector.class": f"{FILE}SinkConnector", "file": str(output), "topics": "by-token", "tasks.max": "1",
            }  # fmt: skip
            connector_arns = [
                world.sdk.create_connector(**request)["connectorArn"]
                for request in (source, connector("by-token-out", servers, sink, **AS_ROLE))
            ]
            for arn in connector_arns:
                described = await world.state(arn, "RUNNING", seconds=300)
                assert "secret" not in json.dumps(described, default=str)
            await eventually(lambda: output.exists() and output.read_text() == "one\ntwo\n", what="copied")
            requested_len = len(tokens.asked)
            assert requested_len >= 2, "the state service and the workers have tokens of their own"
            for arn in connector_arns:
                world.sdk.delete_connector(connectorArn=arn)
            for arn in connector_arns:
                await world.gone(arn)


@needs_java()
async def test_a_jar_of_a_bucket_runs(tmp_path: Path) -> None:
    """The bucket is an S3 server's; the object is replaced later, and the plugin stays unchanged."""
    (jar,) = sorted((await packed(tmp_path / "packed")).glob("*/*.jar"))
    (several := tmp_path / "several.zip").touch()
    with zipfile.ZipFile(several, "w") as archive:
        archive.write(jar, "lib/acme.jar")
    async with object_store(tmp_path / "s3") as server:
        bucket = await server.create("connectors")
        for file, key in ((jar, "team a/acme.jar"), (several, "several.zip")):
            await obstore.put_async(bucket, key, file.read_bytes())
        settings = (
            f"state.buckets={server.endpoint}", f"state.buckets_access_key_id={KEY}",
            f"state.buckets_secret_access_key={SECRET}",
        )  # fmt: skip
        async with managed_connect_world(tmp_path / "system", *settings) as world:
            for name, key, content, file in (
                ("acme-jar", "team a/acme.jar", "JAR", jar), ("acme-zip", "several.zip", "ZIP", several),
            ):  # fmt: skip
                data = file.read_bytes()
                plugin = await _imported(world, name, key, content, data)
                await obstore.put_async(bucket, key, b"something else")
                await _copies(world, name, plugin, tmp_path)
                world.sdk.delete_custom_plugin(customPluginArn=plugin)
            missing = await _described(world, "missing", "nowhere.jar", "JAR", "CREATE_FAILED")
            assert missing["stateDescription"]["code"] == "PluginError.ObjectNotFound"
            broken = await _described(world, "broken", "several.zip", "ZIP", "CREATE_FAILED")
            assert broken["stateDescription"]["code"] == "PluginError.NotZip"


async def _described(world: World, name: str, key: str, content: str, state: str) -> dict[str, Any]:
    location = {"s3Location": {"bucketArn": "arn:aws:s3:::connectors", "fileKey": key}}
    custom_plugin = world.sdk.create_custom_plugin(name=name, contentType=content, location=location)

    def reached() -> dict[str, Any] | None:
        described: dict[str, Any] = world.sdk.describe_custom_plugin(customPluginArn=custom_plugin["customPluginArn"])
        return described if described["customPluginState"] == state else None

    answer: dict[str, Any] = await eventually(reached, what=f"{name} is {state}")
    return answer


async def _imported(world: World, name: str, key: str, content: str, data: bytes) -> str:
    described = await _described(world, name, key, content, "ACTIVE")
    assert described["latestRevision"]["fileDescription"] == {
        "fileMd5": hashlib.md5(data).hexdigest(), "fileSize": len(data),
    }  # fmt: skip
    assert described["latestRevision"]["contentType"] == content
    arn: str = described["customPluginArn"]
    return arn


async def _copies(world: World, name: str, plugin: str, folder: Path) -> None:
    """A connector of the plugin copies, with the plugin's converter from its workers' configuration, and with another.

    The plugin cannot be deleted meanwhile.
    """
    sdk, topic = world.sdk, f"of-{name}"
    (folder / name).mkdir()
    config = {
        "connector.class": "acme.ScriptedSource", "topics": topic, "log": str(folder / name / "log"),
        "records": str(RECORDS), "tasks.max": "1",
    }  # fmt: skip
    content = f"key.converter={STRING}\nvalue.converter=acme.ReversedConverter\n".encode()
    worker_configuration = sdk.create_worker_configuration(name=name, propertiesFileContent=b64encode(content).decode())
    of_worker = {"workerConfigurationArn": worker_configuration["workerConfigurationArn"], "revision": 1}
    sent = connector(name, world.bootstrap, config, plugins=plugins(plugin), workerConfiguration=of_worker)
    arn = sdk.create_connector(**sent)["connectorArn"]
    described = await world.state(arn, "RUNNING", seconds=300)
    assert described["connectorConfiguration"] == config

    async def values(count: int) -> list[bytes]:
        async def found() -> list[bytes] | None:
            values = [message.value() or b"" for message in await asyncio.to_thread(messages, world.bootstrap, topic)]
            return values if len(values) >= count else None

        copied: list[bytes] = await eventually(found, what=f"{count} records are there")
        return copied

    expected = [f"{topic}:v{number}"[::-1].encode() for number in range(RECORDS)]
    assert await values(RECORDS) == expected
    more = {**config, "records": str(RECORDS + 1)}
    for change, value in (
        ({"useDefaultWorkerConfiguration": True}, None), ({"connectorConfiguration": more}, f"v{RECORDS}".encode()),
    ):  # fmt: skip
        version = sdk.describe_connector(connectorArn=arn)["currentVersion"]
        begun = sdk.update_connector(connectorArn=arn, currentVersion=version, **change)
        await world.operation(begun["connectorOperationArn"], "UPDATE_COMPLETE", seconds=300)
        expected += [] if value is None else [value]
    assert await values(RECORDS + 1) == expected
    assert refusal(sdk.delete_custom_plugin, customPluginArn=plugin)[0] == "BadRequestException"
    sdk.delete_connector(connectorArn=arn)
    await world.gone(arn)
    sdk.delete_worker_configuration(workerConfigurationArn=of_worker["workerConfigurationArn"])
