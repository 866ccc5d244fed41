"""Plugins by the command line, before a real gateway and a real state service."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from keelman.cli.exits import CONFLICT, NOT_FOUND, OK, USAGE
from support.cli.commands import Commands, commands, write_home
from support.cli.system import Ran
from support.gateway.system import running_system
from support.state.uploads import jar

pytestmark = pytest.mark.component


@pytest_asyncio.fixture(scope="module")
async def prompt(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Commands]:
    folder = tmp_path_factory.mktemp("home")
    async with running_system(tmp_path_factory.mktemp("system")) as system:
        write_home(system, folder)
        async with commands(folder) as prompt:
            yield prompt


async def run(prompt: Commands, *words: object, code: int = OK) -> Ran:
    outcome = await prompt.run([str(word) for word in words])
    assert outcome.code == code, outcome
    return outcome


async def test_a_plugins_life(prompt: Commands, tmp_path: Path) -> None:
    file, copy = tmp_path / "acme-weather-1.2-plugin.jar", tmp_path / "copy.jar"
    file.write_bytes(jar(3 << 20))
    outcome = await run(prompt, "create", "plugin", file, "--label", "team=blue", "--description", "the sky")
    assert outcome.out == "plugin/acme-weather:1.2\n"
    assert f"{file.name}: 100% of 3.0 MiB, being inspected" in outcome.err, outcome.err
    assert (await run(prompt, "create", "pl", file)).out == "plugin/acme-weather:1.2\n"  # the same again

    other = tmp_path / "other.jar"
    other.write_bytes(jar(10))
    refused = await run(prompt, "create", "plugin", other, "--name", "acme-weather", "--version", "1.2", code=CONFLICT)
    assert "which is another file" in refused.err
    await run(prompt, "create", "plugin", other, "--name", "acme-weather", "--version", "1.10")

    head, *lines = (await run(prompt, "get", "plugins")).out.splitlines()
    assert head.split() == ["PLUGIN", "VERSION", "TYPE", "CLASS", "CLUSTERS", "PROBLEMS"]
    assert [line.split()[:4] for line in lines] == [
        ["acme-weather", version, "source", "WeatherSource"] for version in ("1.10", "1.2")
    ]
    wide = (await run(prompt, "get", "plugins", "-o", "wide", "-l", "team=blue")).out
    assert "team=blue" in wide
    assert "com.acme.WeatherSource" in wide
    plugins = json.loads((await run(prompt, "get", "plugins", "-o", "json")).out)["items"]
    assert [plugin["version"] for plugin in plugins] == ["1.10", "1.2"]
    assert (
        await run(prompt, "get", "plugins", "-o", "name")
    ).out == "plugin/acme-weather:1.10\nplugin/acme-weather:1.2\n"
    assert (
        json.loads((await run(prompt, "get", "plugin", "acme-weather:1.2", "-o", "json")).out)["kind"]
        == "PLUGIN_KIND_JAR"
    )
    assert "description: the sky" in (await run(prompt, "describe", "plugin/acme-weather:1.2")).out

    several = await run(prompt, "update", "plugin", "acme-weather", "--description", "x", code=USAGE)
    assert "NAME:VERSION, with one of 1.10, 1.2" in several.err
    await run(prompt, "update", "plugin", "acme-weather:1.2", "--description", "rain", "--unlabel", "team")
    await run(prompt, "label", "plugin", "acme-weather:1.2", "tier=1")
    changed = json.loads((await run(prompt, "get", "plugin", "acme-weather:1.2", "-o", "json")).out)
    assert (changed["description"], changed["labels"]) == ("rain", {"tier": "1"})

    await run(prompt, "download", "plugin", "acme-weather:1.2", "-o", copy)
    assert copy.read_bytes() == file.read_bytes()
    assert (
        " exists: use another file"
        in (await run(prompt, "download", "plugin", "acme-weather", "-o", copy, code=CONFLICT)).err
    )
    await run(prompt, "download", "plugin", "acme-weather", "-o", copy, "--force")
    assert copy.read_bytes() == other.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([file.name, copy.name, other.name])

    assert (await run(prompt, "delete", "plugin", "acme-weather:1.10")).out == "plugin/acme-weather:1.10 deleted\n"
    assert (await run(prompt, "delete", "plugin", "acme-weather")).out == "plugin/acme-weather:1.2 deleted\n"
    await run(prompt, "get", "plugin", "acme-weather", code=NOT_FOUND)
    assert "no plugin was uploaded" in (await run(prompt, "get", "plugins")).err


async def test_what_is_refused(prompt: Commands, tmp_path: Path) -> None:
    (tmp_path / "text.jar").write_text("hello")
    assert "is no zip, jar, wheel" in (await run(prompt, "create", "plugin", tmp_path / "text.jar", code=USAGE)).err
    stored = await run(prompt, "create", "plugin", tmp_path / "text.jar", "--any-file")
    assert "note: plugin file refused (kind)" in stored.err
    assert "OTHER" in (await run(prompt, "get", "plugins", "-o", "yaml")).out
    assert "a file that can be read" in (await run(prompt, "create", "plugin", tmp_path / "none.jar", code=USAGE)).err
    wrong = await run(prompt, "create", "plugin", tmp_path / "text.jar", "--count", "2", code=USAGE)
    assert "--count: not for plugins" in wrong.err
    assert "--name: not for nodes" in (await run(prompt, "create", "node", "n7", "--name", "x", code=USAGE)).err
    await run(prompt, "download", "plugin", "nosuch", code=NOT_FOUND)
    await run(prompt, "delete", "plugin", "nosuch", code=NOT_FOUND)
