"""Plugin imports by the command line, before a real gateway and a real state service."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.cli.exits import CONFLICT, NOT_FOUND, OK, USAGE
from support.commands import Commands, commands, write_home
from support.gateway_system import running_system
from support.system_kit import Ran
from support.upload_kit import jar

pytestmark = pytest.mark.component


async def ran(prompt: Commands, line: str, code: int = OK) -> Ran:
    found = await prompt.run(line.split())
    assert found.code == code, found
    return found


async def test_a_file_of_a_bucket_becomes_a_plugin(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    async with running_system(tmp_path) as system:
        write_home(system, home)
        (bucket := next(tmp_path.rglob("state.db")).parents[1] / "plugin-store" / "acme").mkdir(parents=True)
        (bucket / "weather").write_bytes(jar())
        async with commands(home) as prompt:
            made = await ran(
                prompt, "create plugin-import weather --from acme/weather --content jar --label a=b --wait"
            )
            assert made.out == "plugin-import/weather\n"
            failed = await ran(prompt, "create pi other --from s3://acme/none --wait", CONFLICT)
            assert "PluginError.ObjectNotFound: there is no object s3://acme/none" in failed.err
            rows = (await ran(prompt, "get pi -o wide")).out.splitlines()
            assert [row.split()[:2] for row in rows[1:]] == [["other", "FAILED"], ["weather", "ACTIVE"]]
            assert (await ran(prompt, "get pi --state FAILED -o name")).out == "plugin-import/other\n"
            assert "weather" in (await ran(prompt, "get plugins")).out
            assert "com.acme.WeatherSource" in (await ran(prompt, "describe plugin weather")).out
            assert "key: weather" in (await ran(prompt, "describe pi weather")).out
            for line, named in (
                ("create pi x --from acme", "--from"),
                ("create pi x --from a/b --content tar", "--content"),
                ("create plugin x --from a/b", "--from: not for plugins"),
                ("update pi weather --description x --wait", "--wait: not for plugin-imports"),
            ):
                assert named in (await ran(prompt, line, USAGE)).err
            await ran(prompt, "update pi weather --description other")
            await ran(prompt, "label pi weather a-")
            assert (await ran(prompt, "delete pi weather")).out == "plugin-import/weather deleted\n"
            await ran(prompt, "get plugin weather", NOT_FOUND)
