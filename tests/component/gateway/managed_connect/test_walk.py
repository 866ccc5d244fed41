"""The walk-through of docs/managed-connect.md, verbatim: its commands and its program, on a real system."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from support.connectors.numbers_wheel import numbers_wheel
from support.eventually import eventually
from support.gateway.managed_connect.world import KEY, REGION, SECRET, World

PAGE = Path(__file__).parents[4] / "docs" / "managed-connect.md"
BOTO3 = """
import botocore.session

def client(name, **settings):
    return botocore.session.Session().create_client(name, **settings)
"""
"""The parts of the library that the program needs, in case it is not installed."""


def blocks(language: str) -> list[str]:
    """The walk's code blocks of a language."""
    walk = PAGE.read_text().partition("## A walk through")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", walk, re.DOTALL)


async def said(folder: Path, *command: str, **environment: str) -> str:
    """The output of a command, which must succeed."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env={**os.environ, **environment}, stdout=pipe, stderr=pipe
    )
    out, err = await process.communicate()
    assert process.returncode == 0, (command[-1], out.decode(), err.decode())
    return out.decode()


async def test_the_walk_through(world: World, tmp_path: Path) -> None:
    if shutil.which("aws") is None:
        pytest.skip("the aws command line is not installed")
    first, own = blocks("sh")
    (program,) = blocks("python")
    with zipfile.ZipFile(tmp_path / "my-connector.zip", "w") as archive:
        wheel = numbers_wheel(tmp_path)
        archive.write(wheel, wheel.name)
    (tmp_path / "boto3.py").write_text(BOTO3)
    begins, _, rest = first.partition("export AWS_ACCESS_KEY_ID")
    assert "keelman up" in begins
    script = "set -euo pipefail\n" + f"export AWS_ACCESS_KEY_ID{rest}{own}"
    for text, expected in (
        ("AWS_ACCESS_KEY_ID=any", f"AWS_ACCESS_KEY_ID={KEY}"), ("SECRET_ACCESS_KEY=any", f"SECRET_ACCESS_KEY={SECRET}"),
        ("http://127.0.0.1:7480", world.endpoint), ("~/.keelman", str(world.keelman.home)),
        ("/tmp/lines", str(tmp_path / "lines")), ('"lines\\"', '"walked\\"'), ("list-connectors --query", ARN_OF),
    ):  # fmt: skip
        assert text in script, text
        script = script.replace(text, expected)
    printed = await said(
        tmp_path, "bash", "-c", script, BROKERS=world.bootstrap, AWS_PAGER="", AWS_CONFIG_FILE=os.devnull
    )
    assert '"ACTIVE"' in printed
    assert '"fileMd5"' in printed
    listed = world.sdk.list_connectors(connectorNamePrefix="walked")["connectors"]
    (arn,) = [entry["connectorArn"] for entry in listed]
    await world.state(arn, "RUNNING")
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": REGION}
    program = program.replace("http://127.0.0.1:7480", world.endpoint)
    program = program.replace("list_connectors()", 'list_connectors(connectorNamePrefix="walked")')
    changed, _, last = program.partition("kc.tag_resource")
    operation = await said(tmp_path, sys.executable, "-c", changed, PYTHONPATH=str(tmp_path), **keys)
    assert operation.strip() in ("PENDING", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE")
    await eventually(
        lambda: (
            world.sdk.list_connector_operations(connectorArn=arn)["connectorOperations"][0]["connectorOperationState"]
            == "UPDATE_COMPLETE"
        ),
        what="the update is complete",
    )
    assert "autoScaling" in (await world.state(arn, "RUNNING"))["capacity"]
    opening = changed.partition("capacity =")[0]
    await said(tmp_path, sys.executable, "-c", f"{opening}kc.tag_resource{last}", PYTHONPATH=str(tmp_path), **keys)
    await world.gone(arn)
    for configuration in world.sdk.list_worker_configurations(namePrefix="strings")["workerConfigurations"]:
        world.sdk.delete_worker_configuration(workerConfigurationArn=configuration["workerConfigurationArn"])
    for custom_plugin in world.sdk.list_custom_plugins(namePrefix="mine")["customPlugins"]:
        world.sdk.delete_custom_plugin(customPluginArn=custom_plugin["customPluginArn"])


ARN_OF = "list-connectors --connector-name-prefix walked --query"
