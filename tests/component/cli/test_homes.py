"""Homes that cannot be written: reported once, at the start, with the folder and the obstacle."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports
from support.worker.starts import STRINGS, properties

pytestmark = pytest.mark.component
SECONDS = 300.0
# Root may write everywhere, unless a file system forbids it.
NOBODY_SPECIAL = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.getuid() == 0 else ()


def worker(home: Path) -> list[str]:
    topics = {f"{kind}.storage.topic": f"homes-{kind}" for kind in ("config", "offset", "status")}
    (port,) = free_ports(1)
    fields = {"bootstrap.servers": "127.0.0.1:1", "group.id": "homes", "listeners": f"http://127.0.0.1:{port}"}
    return ["worker", "run", properties(home.parent / "w.properties", {**fields, **STRINGS, **topics})]


def spark(home: Path) -> list[str]:
    (port,) = free_ports(1)
    return ["spark", "run", f"--port={port}", f"--work-folder={home / 'w'}", f"--health-socket={home / 'run' / 's'}"]


def agent(home: Path) -> list[str]:
    (port,) = free_ports(1)
    return ["agent", "run", "--node=n", f"--home={home}", f"--port={port}", "--state-address=127.0.0.1:1"]


def up(home: Path) -> list[str]:
    return ["up", f"--home={home}", "--no-broker", "--free-ports"]


def up_detached(home: Path) -> list[str]:
    return [*up(home), "--detach"]


CASES = [
    (worker, "run", "worker.home"),
    (worker, "workers", "worker.home"),
    (spark, "run", "spark.health_socket"),
    (spark, "w", "spark.work_folder"),
    (agent, "run", "agent.home"),
    (agent, "workloads", "agent.home"),
    (up, "", "home"),
    (up, "logs", "home"),
    (up_detached, "", "home"),
]


@pytest.fixture
def home() -> Iterator[Path]:
    """A home that does not exist yet. Its path is short: sockets of a home with a long path are outside it."""
    with tempfile.TemporaryDirectory(prefix="keelman-") as folder:
        yield Path(folder) / "home"


@pytest.mark.parametrize("way", ["closed", "a file"])
@pytest.mark.parametrize(("command", "folder", "setting"), CASES, ids=[f"{c[0].__name__} {c[1]}" for c in CASES])
async def test_a_folder_that_cannot_be_written_is_told_at_the_start(
    home: Path, command: Any, folder: str, setting: str, way: str
) -> None:
    blocked = home / folder
    blocked.parent.mkdir(exist_ok=True)
    if way == "closed":
        blocked.mkdir(mode=0o555)
        reason = "Permission denied"
    else:
        blocked.write_text("")
        reason = f"{blocked} is a file"
    code, output = await ended(command(home), home)
    assert code in (1, 2)
    matches = re.findall(rf"{setting}: '({blocked}\S*)' is not legal: a writable folder \({reason}\)", output)
    assert len(matches) == 1, output
    assert "Traceback" not in output
    assert "spark_ended" not in output


async def ended(words: Sequence[str], home: Path) -> tuple[int | None, str]:
    """The exit code and the output of a command that ends by itself."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("KEELMAN_") or k == "KEELMAN_CACHE"}
    child = await asyncio.create_subprocess_exec(
        *tethered([*NOBODY_SPECIAL, sys.executable, "-m", "keelman.cli", *words]),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        env={**plain, "KEELMAN_HOME": str(home)},
    )
    try:
        async with asyncio.timeout(SECONDS):
            output, _ = await child.communicate()
    except TimeoutError:
        child.kill()
        output, _ = await child.communicate()
    return child.returncode, output.decode(errors="replace")
