"""The walk of docs/applying.md, command by command, with the output of each.

The test uses a real gateway, state and broker; two nodes report every assigned workload as running.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from keelman.cli.exits import OK
from support.cli.commands import commands, write_home
from support.gateway.system import running_system
from support.places import ROOT

pytestmark = pytest.mark.component
BLOCK = re.compile(r"```(yaml|console)\n(.*?)```", re.DOTALL)
ADDRESS, FILE = "127.0.0.1:9092", "shop.yaml"


async def test_the_walk(tmp_path: Path, bootstrap: str) -> None:
    walk = (ROOT / "docs" / "applying.md").read_text().partition("## A walk")[2].partition("\n## ")[0]
    blocks = BLOCK.findall(walk.replace(ADDRESS, bootstrap))
    (file := tmp_path / FILE).write_text(blocks[0][1])
    home = tmp_path / "home"
    home.mkdir()
    seen = 0
    async with running_system(tmp_path) as system:
        write_home(system, home)
        async with commands(home) as prompt:
            for _, block in blocks[1:]:
                for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                    line, _, printed = step.partition("\n")
                    words = [str(file) if word == FILE else word for word in shlex.split(line)]
                    if words[0] != "keelman":
                        subprocess.run(words, check=True)
                        continue
                    outcome = await prompt.run(words[1:])
                    assert outcome.out == printed, outcome
                    changes = "--plan" in words and not printed.startswith("4 unchanged")
                    assert outcome.code == (2 if changes else OK), outcome
                    seen += 1
    assert seen == 6
