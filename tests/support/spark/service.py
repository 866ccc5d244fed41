"""The real Spark service as a process of its own, as an agent starts it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.rpc.channels import channel
from keelman.rpc.health import is_serving
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports
from support.eventually import eventually
from support.places import with_tests

STOP_SECONDS = 300.0


@dataclass
class SparkService:
    """A service that is ready."""

    address: str
    log: Path
    pid: int = 0

    def slot_pids(self) -> set[int]:
        """The processes of its present slots.

        Its log also names ended ones, whose process ids may have been reused by now.
        """
        lines = [line for line in self.log.read_text().splitlines() if "slot_attached" in line]
        named = {int(match[1]) for line in lines if (match := re.search(r"\bpid\W+(\d+)", line)) is not None}
        return named & {child.pid for child in psutil.Process(self.pid).children(recursive=True)}

    def signal_slot(self, slot: str, number: int) -> None:
        """Sends a signal to the process of a slot, which the service's log names."""
        lines = [line for line in self.log.read_text().splitlines() if "slot_attached" in line and slot in line]
        match = re.search(r"\bpid\W+(\d+)", lines[-1])
        assert match is not None, lines
        os.kill(int(match[1]), number)


@contextlib.asynccontextmanager
async def spark_service(folder: Path, *, seconds: float = 300.0, **flags: object) -> AsyncIterator[SparkService]:
    """Starts it with its work under `folder` and waits this long until it serves; ends it with the block.

    Its slots can import tests/support.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fields = {"port": free_ports(1)[0], "work_folder": folder / "work", **flags}
    words = [f"--{key.replace('_', '-')}={value}" for key, value in fields.items()]
    new_spark_service = SparkService(f"127.0.0.1:{fields['port']}", folder / "output.log")
    plain = {k: v for k, v in with_tests().items() if not k.startswith("KEELMAN_SPARK_")}
    with new_spark_service.log.open("ab") as output:
        child = await asyncio.create_subprocess_exec(
            *tethered([sys.executable, "-m", "keelman.spark", "run", *words]), stdout=output, stderr=output, env=plain
        )

    new_spark_service.pid = child.pid

    async def serves_or_ended() -> bool:
        return child.returncode is not None or await is_serving(new_spark_service.address)

    try:
        await eventually(serves_or_ended, seconds=seconds, what="the Spark service serves")
        assert child.returncode is None, new_spark_service.log.read_text()[-4000:]
        yield new_spark_service
    finally:
        if child.returncode is None:
            child.terminate()
        async with asyncio.timeout(STOP_SECONDS):
            await child.wait()


async def kill_slot_of(name: str, spark: SparkService) -> None:
    """kill -9 of the process in which the connector's task copies."""

    async def slot() -> str:
        async with channel(spark.address) as opened:
            told = await CopyRunServiceStub(opened).ListCopyRuns(ListCopyRunsRequest(connector=name))
        return next((run.slot for run in told.copy_runs if run.slot), "")

    spark.signal_slot(await eventually(slot, what=f"{name} copies in a slot"), signal.SIGKILL)
