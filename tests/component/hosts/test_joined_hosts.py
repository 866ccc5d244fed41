"""Hosts with networks of their own that join by the commands of docs/trust.md, and nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.eventually import eventually
from support.hosts.networks import GATEWAY, STATE, cabled
from support.hosts.operator import Commands, first_host, operated

pytestmark = [pytest.mark.component, pytest.mark.fault]


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    with cabled(tmp_path, ("n1", "n2")) as system, operated(system) as opened:
        yield opened


async def test_a_second_host_joins_by_the_documented_commands(commands: Commands) -> None:
    await first_host(commands)
    gateway = f"{commands.system.address}:{GATEWAY}"
    token = commands.run("node", "token", "create", "--ttl", "10m").strip()
    homes = {name: commands.system.folder / "of" / name for name in ("n1", "n2")}
    join = ("node", "join", "-", "--home")
    printed = commands.run(*join, str(homes["n1"]), "--node", "n1", host="n1", given=f"{token}@{gateway}")
    address = commands.system.hosts["n1"].address
    assert printed.startswith("node/n1 joined: its certificate is good until ")
    assert f'host = "{address}"' in (homes["n1"] / "agent.toml").read_text()
    assert f'state_address = "{commands.system.address}:{STATE}"' in (homes["n1"] / "agent.toml").read_text()
    commands.start("agent", "run", "--home", str(homes["n1"]), host="n1")
    await eventually(lambda: commands.in_state("n1", "ONLINE"), what="n1 is online")

    other = str(homes["n2"])
    error = commands.run(*join, other, "--node", "n2", host="n2", given=f"{token}@{gateway}", code=1)
    assert "was used at" in error
    assert "by node 'n1'" in error
    fresh = commands.run("node", "token", "create").strip()
    error = commands.run(*join, other, "--node", "n1", host="n2", given=f"{fresh}@{gateway}", code=4)
    assert "the name of node 'n1' is taken: its agent is ONLINE" in error
    assert not (homes["n2"] / "agent.toml").exists()
    commands.run(*join, other, "--node", "n2", host="n2", given=f"{fresh}@{gateway}")
    commands.start("agent", "run", "--home", other, host="n2")
    await eventually(lambda: commands.in_state("n2", "ONLINE"), what="n2 is online")
    assert {"n1", "n2"} <= set(commands.run("node", "token", "list").split()), "who used which"
