"""Worker configurations by the command line, before a real gateway and a real state service."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.cli.exits import NOT_FOUND, USAGE
from support.cli.commands import commands, write_home
from support.gateway.system import running_system

pytestmark = pytest.mark.component
CONTENT = """key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
db.password=sesam
"""


async def test_one_is_created_from_a_file_revised_shown_and_deleted(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    file, wrong = tmp_path / "w.properties", tmp_path / "wrong.properties"
    file.write_text(CONTENT)
    wrong.write_text("producer.linger.ms=5\n")
    async with running_system(tmp_path) as system:
        write_home(system, home)
        async with commands(home) as prompt:
            outcome = await prompt.ran(f"create wf orders --config-file {file} --description first --label team=blue")
            assert outcome.out == "worker-configuration/orders\n"
            refused = await prompt.ran(f"create wf other --config-file {wrong}", USAGE)
            for key in ("key.converter", "value.converter", "producer.linger.ms"):
                assert key in refused.err
            assert "--config-file: missing" in (await prompt.ran("create wf other", USAGE)).err
            assert "--config-file: /none" in (await prompt.ran("create wf other --config-file /none", USAGE)).err
            assert "--wait: not for" in (await prompt.ran(f"create wf o --config-file {file} --wait", USAGE)).err
            assert "--config-file: not for" in (await prompt.ran(f"update no n --config-file {file}", USAGE)).err

            revised = await prompt.ran(f"update worker-configuration orders --config-file {file}")
            assert revised.out == "worker-configuration/orders has revision 2\n"
            await prompt.ran("update wf orders --description other")
            await prompt.ran("label wf orders team=red")
            (_, row) = (await prompt.ran("get wf -o wide -l team=red")).out.splitlines()
            assert row.split()[:2] == ["orders", "2"]
            assert row.endswith("other")
            shown = (await prompt.ran("describe wf orders")).out
            assert "db.password=[hidden]" in shown
            assert "sesam" not in shown
            assert (await prompt.ran("delete wf orders")).out == "worker-configuration/orders deleted\n"
            await prompt.ran("get wf orders", NOT_FOUND)
