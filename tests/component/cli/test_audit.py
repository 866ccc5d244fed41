"""`keelman get audit` at a real gateway: what was written, chosen by caller, resource, outcome and time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli.commands import commands, write_home
from support.eventually import eventually
from support.gateway.system import running_system

pytestmark = pytest.mark.component


async def test_what_was_written_is_listed_and_chosen(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    async with running_system(tmp_path, {}) as system:
        write_home(system, home)
        async with commands(home) as prompt:
            assert (await prompt.run(["create", "bc", "away", "--bootstrap-servers", "127.0.0.1:1"])).code == 0

            async def listed(*words: str) -> list[Any]:
                result = await prompt.run(["get", "audit", "-o", "json", *words])
                assert result.code == 0, result
                found: list[Any] = json.loads(result.out)["items"]
                return found

            (event,) = await eventually(listed)
            assert (event["caller"], event["call"], event["resource"], event["outcome"]) == (
                "everybody", "BrokerClusterService/CreateBrokerCluster", "away", "OK",
            )  # fmt: skip
            assert await listed("--caller", "everybody", "--resource", "away", "--outcome", "ok", "--since", "1h")
            for other in (("--caller", "eve"), ("--resource", "awa"), ("--outcome", "403")):
                assert await listed(*other) == []
            assert "BrokerClusterService/CreateBrokerCluster  away" in (await prompt.run(["get", "audit"])).out
            for wrong, reason in (
                (["get", "audit", "--since", "soon"], "--since: 'soon' is not legal: a time ago"),
                (["get", "audit", "1"], "name: '1' is not legal: left out"),
                (["get", "nodes", "--caller", "eve"], "--caller: not for nodes, only for audit"),
            ):
                result = await prompt.run(wrong)
                assert (result.code, reason in result.err) == (2, True), result
