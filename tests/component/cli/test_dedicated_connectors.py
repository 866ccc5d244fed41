"""Dedicated connectors by the command line, before a real gateway and a real state service.

Its workers are a simulated agent's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.cli.exits import CONFLICT, NOT_FOUND, USAGE
from support.cli.commands import commands, write_home
from support.eventually import eventually
from support.gateway.system import running_system
from support.state.dedicated import FILE

pytestmark = pytest.mark.component


async def test_one_is_created_changed_shown_and_deleted(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    source = f"--set connector.class={FILE}SourceConnector --set topic=t --set db.password=sesam"
    async with running_system(tmp_path) as system:
        write_home(system, home)
        async with commands(home) as prompt:
            assert "connector.class: not set" in (await prompt.ran("create dc one --set a=b", USAGE)).err
            wrong = await prompt.ran(f"create dc one {source} --bootstrap-servers nowhere", USAGE)
            assert "bootstrap_servers: 'nowhere'" in wrong.err
            wrong = await prompt.ran(f"create dc one {source} --worker-configuration w:x", USAGE)
            assert "--worker-configuration: 'w:x'" in wrong.err
            assert "--worker-property: not for" in (await prompt.ran("create wc w --worker-property a=b", USAGE)).err

            outcome = await prompt.ran(
                f"create dc one {source} --bootstrap-servers 127.0.0.1:1 --connector lines --count 2 --memory 1GiB"
                " --worker-property offset.flush.interval.ms=500 --label team=blue --set healthy=yes --set young=yes",
            )
            assert (outcome.out, "is being created: operation/" in outcome.err) == ("dedicated-connector/one\n", True)

            async def shown_with_both() -> bool:
                (_, row) = (await prompt.ran("get dedicated-connectors -l team=blue")).out.splitlines()
                name, _, connector, workers = row.split()[:4]
                assert (name, connector) == ("one", "lines")
                return workers == "2/2"

            await eventually(shown_with_both, what="both workers run")
            assert "has not ended" in (await prompt.ran("pause dc one", CONFLICT)).err

            async def shown_as_running() -> bool:
                system.connectors["one"].get("lines", {}).pop("young", None)  # only now do its workers have a status
                return " RUNNING " in (await prompt.ran("get dc one")).out

            await eventually(shown_as_running, what="it is created")
            shown = (await prompt.ran("describe dc one")).out
            assert "offset.flush.interval.ms: '500'" in shown
            assert "CREATE_DEDICATED" in shown
            assert (await prompt.ran("get operations --of dc/one -o name")).out.startswith("operation/op-")

            await prompt.ran("label dc one team=red")
            assert (await prompt.ran("update dc one --description new")).out == "dedicated-connector/one updated\n"
            again = await prompt.ran("update dc one --description new")
            assert again.out == "dedicated-connector/one has these values already\n"

            deleted = await prompt.ran("delete dc one --yes --wait")
            assert deleted.out == "dedicated-connector/one deleted\n"
            await prompt.ran("get dc one", NOT_FOUND)
            assert "one" not in (await prompt.ran("get wc")).out
