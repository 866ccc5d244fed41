"""Clients other than today's SDK: an SDK with an older model, the command line, and clients of other languages."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.loaders import Loader

from support.gateway.managed_connect.bare import NOWHERE, Bare, bare_system
from support.gateway.managed_connect.cases import CONFIG, autoscaled
from support.gateway.managed_connect.world import BUILT_IN, KEY, PROPERTIES, REGION, SECRET, connector

pytestmark = pytest.mark.component
PROGRAMS = Path(__file__).parents[3] / "support" / "gateway" / "managed_connect" / "programs"
FIRST_OPERATIONS = {
    "CreateConnector", "CreateCustomPlugin", "CreateWorkerConfiguration", "DeleteConnector", "DescribeConnector",
    "DescribeCustomPlugin", "DescribeWorkerConfiguration", "ListConnectors", "ListCustomPlugins",
    "ListWorkerConfigurations", "UpdateConnector",
}  # fmt: skip
"""The members in the model of 2021 (botocore 1.21.43)."""
LATER_MEMBERS = {
    "maxAutoscalingTaskCount", "networkType", "tags", "stateDescription", "workerConfigurationState", "namePrefix",
    "skipHealthValidation", "useDefaultWorkerConfiguration", "connectorOperationArn",
}  # fmt: skip
"""The operations that it does not have; of UpdateConnector it has the capacity alone."""
LATER_STATES = {"PAUSED", "PAUSING", "RESUMING", "RESTARTING"}


@pytest.fixture(scope="module")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bare]:
    async with bare_system(tmp_path_factory.mktemp("clients")) as system:
        yield system


def older_client(endpoint: str, folder: Path) -> Any:
    """The SDK's client with the members that its first model had."""
    model = copy.deepcopy(Loader().load_service_model("kafkaconnect", "service-2"))
    model["operations"] = {
        name: operation for name, operation in model["operations"].items() if name in FIRST_OPERATIONS
    }
    for name, shape in model["shapes"].items():
        dropped = LATER_MEMBERS if name != "UpdateConnectorRequest" else LATER_MEMBERS | {
            "workerConfiguration", "plugins", "connectorConfiguration"
        }  # fmt: skip
        if "members" in shape:
            shape["members"] = {key: member for key, member in shape["members"].items() if key not in dropped}
        if "enum" in shape:
            shape["enum"] = [state for state in shape["enum"] if state not in LATER_STATES]
    place = folder / "kafkaconnect" / model["metadata"]["apiVersion"]
    place.mkdir(parents=True)
    (place / "service-2.json").write_text(json.dumps(model))
    session = botocore.session.Session()
    session.register_component("data_loader", Loader(extra_search_paths=[str(folder)]))
    client = session.create_client(
        "kafkaconnect", endpoint_url=endpoint, region_name=REGION, aws_access_key_id=KEY, aws_secret_access_key=SECRET
    )
    assert not hasattr(client, "pause_connector")
    return client


def test_an_older_sdk(bare: Bare, tmp_path: Path) -> None:
    older = older_client(bare.endpoints[0], tmp_path)
    content = b64encode(PROPERTIES).decode()
    of = older.create_worker_configuration(name="older", propertiesFileContent=content)["workerConfigurationArn"]
    described = older.describe_worker_configuration(workerConfigurationArn=of)
    assert described["latestRevision"]["propertiesFileContent"] == content
    scaled = autoscaled()
    del scaled["autoScaling"]["maxAutoscalingTaskCount"]
    arn = older.create_connector(**connector("older", NOWHERE, CONFIG, capacity=scaled))["connectorArn"]
    described = older.describe_connector(connectorArn=arn)
    assert (described["connectorState"], described["capacity"]) == ("CREATING", scaled)
    with pytest.raises(older.exceptions.BadRequestException, match="currentVersion"):
        older.update_connector(connectorArn=arn, currentVersion="K", capacity=scaled)
    with pytest.raises(older.exceptions.ConflictException, match="already exists"):
        older.create_connector(**connector("older", NOWHERE, CONFIG))
    assert [
        connector["connectorArn"] for connector in older.list_connectors(connectorNamePrefix="old")["connectors"]
    ] == [arn]
    assert older.delete_connector(connectorArn=arn)["connectorState"] == "DELETING"


def ran(words: list[str], folder: Path, *, seconds: float = 300.0, **environment: str) -> str:
    """The output of a program, which must succeed."""
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def test_the_command_line(bare: Bare, tmp_path: Path) -> None:
    aws = shutil.which("aws")
    if aws is None:
        pytest.skip("the aws command line is not installed")
    environment = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": REGION}
    environment |= {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_PAGER": ""}

    def called(*words: str) -> Any:
        command = [aws, "kafkaconnect", "--endpoint-url", bare.endpoints[0], "--output", "json", *words]
        return json.loads(ran(command, tmp_path, **environment) or "{}")

    sent = json.dumps(connector("by-command", NOWHERE, CONFIG, tags={"team": "blue"}))
    arn = called("create-connector", "--cli-input-json", sent)["connectorArn"]
    described = called("describe-connector", "--connector-arn", arn)
    assert (described["connectorName"], described["networkType"]) == ("by-command", "IPV4")
    assert described["creationTime"]
    called("tag-resource", "--resource-arn", arn, "--tags", "more=x y")
    tags = called("list-tags-for-resource", "--resource-arn", arn)["tags"]
    assert tags == {"team": "blue", "more": "x y"}
    listed = called("list-connectors", "--connector-name-prefix", "by-", "--page-size", "1")["connectors"]
    assert [entry["connectorArn"] for entry in listed] == [arn]
    assert called("delete-connector", "--connector-arn", arn)["connectorState"] == "DELETING"


def judged(answer: Any) -> None:
    """Checks the answers that a program in another language received."""
    assert answer["tags"] == {"a b": "c&d"}
    assert answer["conflict"] is True
    assert -60 < answer["age"] < 120
    assert -60 < answer["born"] < 120
    assert (answer["state"], answer["out"]) == ("CREATING", 80)
    assert answer["none"] == "NotFoundException"
    assert answer["plugins"] == ["built-in"]


def arguments(bare: Bare) -> list[str]:
    """The arguments of the programs."""
    return [bare.endpoints[0], REGION, KEY, SECRET, PROPERTIES.decode(), BUILT_IN]


def test_a_program_in_go(bare: Bare, tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed")
    shutil.copy(PROGRAMS / "main.go", tmp_path)
    (tmp_path / "go.mod").write_text("module example.test/managed\n\ngo 1.24\n")
    tidy = subprocess.run([go, "mod", "tidy"], cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    if tidy.returncode:
        pytest.skip(f"the SDK of Go cannot be had: {tidy.stderr.strip().splitlines()[-1]}")
    judged(json.loads(ran([go, "run", ".", *arguments(bare)], tmp_path, seconds=400)))


def test_a_program_in_javascript(bare: Bare, tmp_path: Path) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("Node.js is not installed")
    shutil.copy(PROGRAMS / "main.mjs", tmp_path)
    install = [npm, "install", "--prefer-offline", "--no-audit", "--no-fund", "@aws-sdk/client-kafkaconnect"]
    done = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"the SDK of JavaScript cannot be had: {done.stderr.strip().splitlines()[-1]}")
    judged(json.loads(ran([node, "main.mjs", *arguments(bare)], tmp_path)))
