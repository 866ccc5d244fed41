"""Secrets by the command line, before a real gateway and a real state service."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.cli.exits import NOT_FOUND, OK, USAGE
from support.cli.commands import Commands, commands, write_home
from support.cli.system import Ran
from support.gateway.system import running_system

pytestmark = pytest.mark.component
CANARY = "canary-0815"


async def test_a_secret_is_created_from_a_file_changed_and_deleted_and_never_shown(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    printed = ""

    async def ran(prompt: Commands, line: str, code: int = OK) -> Ran:
        nonlocal printed
        outcome = await prompt.run(line.split())
        assert outcome.code == code, outcome
        printed += outcome.out + outcome.err
        return outcome

    (properties := tmp_path / "s.properties").write_text(f"user=me\npassword={CANARY}\n")
    (document := tmp_path / "s.json").write_text(f'{{"password": "{CANARY}", "port": 5432}}')
    (broken := tmp_path / "broken.json").write_text(f'{{"password": "{CANARY}"')
    (nested := tmp_path / "nested.json").write_text(f'{{"password": ["{CANARY}"]}}')
    async with running_system(tmp_path) as system:
        write_home(system, home)
        async with commands(home) as prompt:
            outcome = await ran(prompt, f"create secret prod/db --config-file {properties} --label team=blue")
            assert outcome.out == "secret/prod/db\n"
            for line, named in (
                ("create secret other", "--config-file: missing"),
                (f"create secret other --config-file {broken}", "begins like JSON and is not valid JSON"),
                (f"create secret other --config-file {nested}", "password: expected a text"),
                (f"create secret other --config-file {properties} --set a=b", "--set: not for secrets"),
                (f"update secret prod/db --config-file {document} --description x", "not together"),
            ):
                assert named in (await ran(prompt, line, USAGE)).err
            (_, row) = (await ran(prompt, "get secrets -l team=blue")).out.splitlines()
            assert row.split()[:2] == ["prod/db", "password,user"]
            assert (
                await ran(prompt, f"update secret prod/db --config-file {document}")
            ).out == "secret/prod/db updated\n"
            await ran(prompt, "update se prod/db --description mine")
            await ran(prompt, "label se prod/db team-")
            shown = (await ran(prompt, "describe secret prod/db")).out
            assert "- password\n- port\n" in shown
            await ran(prompt, "get secret prod/db -o json")
            assert (await ran(prompt, "delete secret/prod/db")).out == "secret/prod/db deleted\n"
            await ran(prompt, "get secret prod/db", NOT_FOUND)
    assert CANARY not in printed
    assert not any(CANARY.encode() in file.read_bytes() for file in tmp_path.glob("*.log"))
