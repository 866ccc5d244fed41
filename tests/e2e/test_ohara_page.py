"""The walk through docs/ohara.md, run verbatim; only the home of the system and its ports are others."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import orjson
import pytest

from support.cli.system import Keelman
from support.places import ROOT

pytestmark = pytest.mark.e2e
PAGE = (ROOT / "docs" / "ohara.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
UP = "keelman up --detach\n"
NOTES = "/tmp/keelman-ohara.txt"


def program(http: str, notes: Path) -> str:
    """The commands of the page, in one shell that ends with the first command that fails."""
    whole = "".join(f"echo '== {number}'\n{block}" for number, block in enumerate(BLOCKS))
    assert UP in whole
    whole = whole.replace(UP, "").replace("http://127.0.0.1:7480", http).replace(NOTES, str(notes))
    return f"set -e\npython3() {{ '{sys.executable}' \"$@\"; }}\n{whole}"


async def test_the_walk_through_does_what_it_says(own: Keelman, tmp_path: Path) -> None:
    await own.ok("up", "--detach", "--free-ports")
    notes = tmp_path / Path(NOTES).name
    shell = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        program(own.system["http"], notes),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(300):
            out = (await shell.communicate())[0].decode()
    except TimeoutError:
        shell.kill()
        raise AssertionError((await shell.communicate())[0].decode()[-3000:] + own.logs()) from None
    assert shell.returncode == 0, out + own.logs()
    parts = [part.partition("\n")[2] for part in re.split(r"^== ", out, flags=re.MULTILINE)[1:]]
    first, node, brokers, workers, connectors, files, ends = parts
    assert orjson.loads(first)["state"] == "RUNNING"
    assert orjson.loads(node)["state"] == "UNAVAILABLE"
    assert '"code"' not in out.replace(ends, ""), "only the stop of a resource in use is refused"
    assert orjson.loads(brokers.splitlines()[0])["name"] == "zk"
    (listed,) = orjson.loads(workers.splitlines()[-2])
    assert (listed["xmx"], listed["tags"], listed["state"]) == (1024, {"team": "blue"}, "RUNNING")
    (containers,) = orjson.loads(workers.splitlines()[-1])
    assert containers["containers"][0]["state"] == "RUNNING"
    messages = orjson.loads(connectors.splitlines()[-1])["messages"]
    assert {m["value"] for m in messages} <= {"one", "two"} or messages
    assert connectors.splitlines().count("0") == 1, "no setting is wrong"
    assert orjson.loads(files.partition("}one")[0] + "}")["size"] == len("one\ntwo\n")
    assert files.endswith("one\ntwo\n")
    refused = orjson.loads(ends.splitlines()[0])
    assert refused["message"].startswith("you can't remove broker cluster:")
    assert '"code"' not in "".join(ends.splitlines()[1:])
    assert orjson.loads(ends.splitlines()[-1]) == []
