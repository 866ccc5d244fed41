"""The main job as `make run` starts it: a whole copy, and a job that is killed with everything and simply run again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli.system import PATIENCE_SECONDS, Keelman, Ran, numbered
from support.eventually import eventually

pytestmark = pytest.mark.e2e
LINES = 400_000
"""Several seconds of copying: it is killed in the middle."""


async def started(own: Keelman, path: Path, output: Path, *, once: bool) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "keelman.cli.demo", "--home", str(own.home), "--free-ports"),
        env={**own.environment, "INPUT": str(path), "OUTPUT": str(output), "ONCE": "1" if once else ""},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


async def ran(own: Keelman, path: Path, output: Path) -> Ran:
    process = await started(own, path, output, once=True)
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, err = await process.communicate()
    return Ran(process.returncode or 0, out.decode(), err.decode())


async def test_killed_with_everything_it_goes_on(own: Keelman, tmp_path: Path) -> None:
    path, output = tmp_path / "given.txt", tmp_path / "copied.txt"
    path.write_bytes(numbered(0, LINES))
    first = await started(own, path, output, once=False)
    await eventually(lambda: output.exists() and output.stat().st_size > 100_000, every=0.01, what="copying continues")
    own.kill_everything()
    await first.communicate()
    await own.gone()
    partial = output.stat().st_size

    second = await ran(own, path, output)
    assert second.code == 0, f"{second.out}\n{second.err}\n{own.logs()}"
    assert "going on where the last run stopped" in second.out
    assert output.read_bytes() == path.read_bytes()
    assert partial <= path.stat().st_size
    assert own.processes() == []

    with path.open("ab") as stream:
        stream.write(numbered(LINES, 10))
    output.unlink()
    third = await ran(own, path, output)
    assert third.code == 0, f"{third.out}\n{third.err}\n{own.logs()}"
    assert "OUTPUT was removed" in third.out
    assert output.read_bytes() == path.read_bytes()
    assert own.processes() == []


async def test_what_lines_cannot_carry_is_refused_at_once(own: Keelman, tmp_path: Path) -> None:
    path, output = tmp_path / "given.txt", tmp_path / "copied.txt"
    for content, word in (
        (b"a\r\nb\n", "carriage return"),
        (b"a\nb", "no line feed at the end"),
        (b"a\n\xff\n", "not UTF-8"),
        (b"", "is empty"),
    ):
        path.write_bytes(content)
        refused = await ran(own, path, output)
        assert (refused.code, word in refused.err) == (1, True), refused.err
        assert str(path) in refused.err
    path.write_bytes(b"a\n")
    output.write_bytes(b"mine\n")
    refused = await ran(own, path, output)
    assert (refused.code, output.read_bytes()) == (1, b"mine\n")
    assert (await ran(own, path, path)).code == 1
    assert (await ran(own, tmp_path / "none.txt", output)).code == 1
    assert not (own.home / "system.json").exists()
