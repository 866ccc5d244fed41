"""Plugin imports by the command line, before a real gateway and a real state service."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.cli.exits import CONFLICT, NOT_FOUND, USAGE
from support.cli.commands import commands, write_home
from support.gateway.system import running_system
from support.state.uploads import jar

pytestmark = pytest.mark.component


async def test_a_file_of_a_bucket_becomes_a_plugin(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    async with running_system(tmp_path) as system:
        write_home(system, home)
        (bucket := next(tmp_path.rglob("state.db")).parents[1] / "plugin-store" / "acme").mkdir(parents=True)
        (bucket / "weather").write_bytes(jar())
        async with commands(home) as prompt:
            outcome = await prompt.ran(
                "create plugin-import weather --from acme/weather --content jar --label a=b --wait"
            )
            assert outcome.out == "plugin-import/weather\n"
            failed = await prompt.ran("create pi other --from s3://acme/none --wait", CONFLICT)
            assert "PluginError.ObjectNotFound: no object s3://acme/none" in failed.err
            rows = (await prompt.ran("get pi -o wide")).out.splitlines()
            assert [row.split()[:2] for row in rows[1:]] == [["other", "FAILED"], ["weather", "ACTIVE"]]
            assert (await prompt.ran("get pi --state FAILED -o name")).out == "plugin-import/other\n"
            assert "weather" in (await prompt.ran("get plugins")).out
            assert "com.acme.WeatherSource" in (await prompt.ran("describe plugin weather")).out
            assert "key: weather" in (await prompt.ran("describe pi weather")).out
            for line, named in (
                ("create pi x --from acme", "--from"),
                ("create pi x --from a/b --content tar", "--content"),
                ("create plugin x --from a/b", "--from: not for plugins"),
                ("update pi weather --description x --wait", "--wait: not for plugin-imports"),
            ):
                assert named in (await prompt.ran(line, USAGE)).err
            await prompt.ran("update pi weather --description other")
            await prompt.ran("label pi weather a-")
            assert (await prompt.ran("delete pi weather")).out == "plugin-import/weather deleted\n"
            await prompt.ran("get plugin weather", NOT_FOUND)
