"""Dedicated connectors by the command line, before a real gateway and a real state service; its workers are a simulated
agent's."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.cli.exits import CONFLICT, NOT_FOUND, OK, USAGE
from support.commands import Commands, commands, write_home
from support.dedicated_kit import FILE
from support.gateway_system import running_system
from support.system_kit import Ran

pytestmark = pytest.mark.component


async def ran(prompt: Commands, line: str, code: int = OK) -> Ran:
    found = await prompt.run(line.split())
    assert found.code == code, found
    return found


async def test_one_is_created_changed_shown_and_deleted(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    source = f"--set connector.class={FILE}SourceConnector --set topic=t --set db.password=sesam"
    async with running_system(tmp_path) as system:
        write_home(system, home)
        async with commands(home) as prompt:
            assert "connector.class: not set" in (await ran(prompt, "create dc one --set a=b", USAGE)).err
            wrong = await ran(prompt, f"create dc one {source} --bootstrap-servers nowhere", USAGE)
            assert "bootstrap_servers: 'nowhere'" in wrong.err
            wrong = await ran(prompt, f"create dc one {source} --worker-configuration w:x", USAGE)
            assert "--worker-configuration: 'w:x'" in wrong.err
            assert "--worker-property: not for" in (await ran(prompt, "create wc w --worker-property a=b", USAGE)).err

            made = await ran(
                prompt,
                f"create dc one {source} --bootstrap-servers 127.0.0.1:1 --connector lines --count 2 --memory 1GiB"
                " --worker-property offset.flush.interval.ms=500 --label team=blue",
            )
            assert (made.out, "is being created: operation/" in made.err) == ("dedicated-connector/one\n", True)
            (_, row) = (await ran(prompt, "get dedicated-connectors -l team=blue")).out.splitlines()
            assert row.split()[:4] == ["one", "CREATING", "lines", "2/2"]
            shown = (await ran(prompt, "describe dc one")).out
            assert "offset.flush.interval.ms: '500'" in shown
            assert "CREATE_DEDICATED" in shown
            assert "has not ended" in (await ran(prompt, "pause dc one", CONFLICT)).err
            failed = await ran(prompt, "get operations --of dc/one -o name")
            assert failed.out.startswith("operation/op-")

            await ran(prompt, "label dc one team=red")
            assert (await ran(prompt, "update dc one --description new")).out == "dedicated-connector/one updated\n"
            again = await ran(prompt, "update dc one --description new")
            assert again.out == "dedicated-connector/one has all this already\n"

            deleted = await ran(prompt, "delete dc one --yes --wait")
            assert deleted.out == "dedicated-connector/one deleted\n"
            await ran(prompt, "get dc one", NOT_FOUND)
            assert "one" not in (await ran(prompt, "get wc")).out
