"""An S3 server for tests: Versity's gateway over a folder, a program of its own that is built once.

`python -m keelman.testing.s3_server` builds it with Go into the cache, which takes some minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from keelman.runtime.home import cache_folder
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports

MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
START_SECONDS = 60.0
KEY, SECRET, BUCKET = "keelman-tests", "keelman-tests-secret", "plugins"


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server with one bucket, BUCKET, whose objects are files below `folder`."""

    endpoint: str
    folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """What clients need of the environment."""
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}


def program() -> Path | None:
    """The server's program, where it has been built or is installed."""
    built = cache_folder() / "bin" / "versitygw"
    installed = shutil.which("versitygw")
    return built if built.is_file() else Path(installed) if installed else None


@contextlib.asynccontextmanager
async def running_s3_server(folder: Path, port: int | None = None) -> AsyncIterator[S3Server]:
    """Serves a folder, which it makes. Raises FileNotFoundError without the program."""
    found = program()
    if found is None:
        raise FileNotFoundError("versitygw")
    port = port or free_ports(1)[0]
    (folder / BUCKET).mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.log").open("ab") as log:
        child = await asyncio.create_subprocess_exec(
            *tethered([str(found), "--port", f"127.0.0.1:{port}", "posix", str(folder)]),
            env={**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        async with asyncio.timeout(START_SECONDS):
            while child.returncode is None and not await _listens(port):  # noqa: ASYNC110  (another program's port)
                await asyncio.sleep(0.05)
        if child.returncode is not None:
            raise SystemError(f"versitygw ended with {child.returncode}: see {folder}.log")
        yield S3Server(f"http://127.0.0.1:{port}", folder / BUCKET)
    finally:
        if child.returncode is None:
            child.terminate()
        await child.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


def main() -> int:
    """Builds the program."""
    environment = {**os.environ, "GOBIN": str(cache_folder() / "bin")}
    return subprocess.run(["go", "install", MODULE], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
