"""The time until a parked task copies again, and until a new one does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from bench.copying.throughput import FILE, STRING
from bench.copying.trickle import Reader
from bench.measuring.data import Topics, line
from bench.measuring.systems import Keelman, create, delete, running
from keelman.api.copy.v1 import copy_run_pb2
from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.rpc.channels import channel

PARK_MS = 1000


async def copy_runs(system: Keelman, connector: str) -> list[copy_run_pb2.CopyRun]:
    """The connector's copy runs, ended ones too, the newest last."""
    async with channel(system.spark) as opened:
        request = ListCopyRunsRequest(connector=connector, include_ended=True, page_size=1000)
        answer = await CopyRunServiceStub(opened).ListCopyRuns(request)
        return sorted(answer.copy_runs, key=lambda run: run.create_time.ToNanoseconds())


def config(file: Path, topic: str) -> dict[str, str]:
    """A file source that parks soon."""
    fields = {"connector.class": f"{FILE}SourceConnector", "file": str(file), "topic": topic}
    return {**fields, "key.converter": STRING, "value.converter": STRING, "keelman.park.after.ms": str(PARK_MS)}


async def wake(system: Keelman, topics: Topics, bootstrap: str, folder: Path, *, samples: int) -> list[float]:
    """Milliseconds from a line in the file of a parked task until it is visible in the topic."""
    took: list[float] = []
    many = 10
    for index in range(many):
        (folder / f"wake-{index}.txt").write_bytes(line(index) + b"\n")
        topics.create(f"wake-{index}", 1)
        await create(system, f"wake-{index}", config(folder / f"wake-{index}.txt", f"wake-{index}"))
    readers = [Reader(bootstrap, f"wake-{index}") for index in range(many)]
    number = 100
    try:
        while len(took) < samples:
            for index in range(many):
                await parked(system, f"wake-{index}")
                number += 1
                begun = time.perf_counter()
                with (folder / f"wake-{index}.txt").open("ab") as stream:
                    stream.write(line(number) + b"\n")
                took.append((await _came(readers[index], number) - begun) * 1000)
    finally:
        for reader in readers:
            reader.close()
        for index in range(many):
            await delete(system, f"wake-{index}")
    return took


async def parked(system: Keelman, connector: str) -> None:
    """Waits until the connector's newest copy run has ended: its task is parked."""
    for _ in range(600):
        runs = await copy_runs(system, connector)
        if runs and runs[-1].state == copy_run_pb2.COPY_RUN_STATE_ENDED:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{connector} was not parked within a minute")


async def start(
    system: Keelman,
    topics: Topics,
    bootstrap: str,
    folder: Path,
    *,
    samples: int,
    more: Mapping[str, str] | None = None,
) -> tuple[list[float], list[float]]:
    """Milliseconds to the first visible record, from the order (the copy run's creation) and from the REST request.

    `more` overrides the connector's configuration.
    """
    topics.create("start", 1)
    reader = Reader(bootstrap, "start")
    ordered: list[float] = []
    requests: list[float] = []
    try:
        for number in range(1, samples + 1):
            name, file = f"start-{number}", folder / f"start-{number}.txt"
            file.write_bytes(line(number) + b"\n")
            begun, wall = time.perf_counter(), time.time()
            await create(system, name, {**config(file, "start"), **(more or {})})
            came = await _came(reader, number)
            run = (await copy_runs(system, name))[0]
            order = begun + run.create_time.ToNanoseconds() / 1e9 - wall
            ordered.append((came - order) * 1000)
            requests.append((came - begun) * 1000)
            await running(system, name)
            await delete(system, name)
    finally:
        reader.close()
    return ordered, requests


async def _came(reader: Reader, number: int) -> float:
    deadline = time.monotonic() + 60
    while number not in reader.came:
        assert time.monotonic() < deadline, f"record {number} did not come within a minute"
        await asyncio.sleep(0.002)
    return reader.came[number]
