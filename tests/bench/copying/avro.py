"""File to Kafka as Avro with a schema registry, exactly-once: ours beside Kafka Connect with Apicurio's converter.

Confluent's own converter is not on Maven Central. Apicurio's is derived from it and writes the same bytes with
`as-confluent`: a zero, the id of the schema's content in four bytes, then Avro. Both use one registry, ours by its
Confluent-compatible API and Apicurio's by its own, and both keep ids and schemas after the first record.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from bench.copying import throughput
from bench.measuring.data import LINE_BYTES, arrival_rate, line, write_lines
from bench.measuring.figures import Figure, alone, compared, number
from bench.measuring.systems import System, connect, create, delete, running
from keelman.runtime.java import maven
from support.servers.registry import RegistryProcess, running_registry

if TYPE_CHECKING:
    from bench.rows import Bench

LOCK = Path(__file__).with_name("apicurio_converter.lock")
PROBE_SECONDS = 90.0
GOAL = ">= 1"
PEERS: Mapping[str, Mapping[str, str]] = throughput.FILE_SOURCE_PEERS
HOIST = {
    "transforms": "hoist",
    "transforms.hoist.type": f"{throughput.TRANSFORMS}.HoistField$Value",
    "transforms.hoist.field": "line",
}


def our_config(registry: RegistryProcess) -> dict[str, str]:
    """The properties of our connector beside those of its file."""
    converter = {"value.converter": "io.confluent.connect.avro.AvroConverter"}
    return {**HOIST, **converter, "value.converter.schema.registry.url": registry.url}


def their_config(registry: RegistryProcess) -> dict[str, str]:
    """The properties of the peer's connector beside those of its file."""
    apicurio = {
        "url": f"http://127.0.0.1:{registry.port}/apis/registry/v2",
        "auto-register": "true",
        "if-exists": "RETURN_OR_UPDATE",
        "as-confluent": "true",
        "use-id": "contentId",
        "headers.enabled": "false",
    }
    converter = {"value.converter": "io.apicurio.registry.utils.converter.AvroConverter"}
    return {**HOIST, **converter, **{f"value.converter.apicurio.registry.{k}": v for k, v in apicurio.items()}}


async def plugins(folder: Path) -> Path:
    """A folder for `plugin.path` with Apicurio's converter, fetched if need be."""
    place = folder / "apicurio-converter"
    place.mkdir(parents=True)
    for jar in await maven.jars(maven.Lock.read(LOCK)):
        (place / jar.name).symlink_to(jar)
    return folder


async def probed(system: System, load: throughput.Load, config: Mapping[str, str]) -> None:
    """Copies a few lines.

    Raises AssertionError when they do not come, or not in Confluent's bytes, SystemExit with the trace when it fails.
    """
    count, name = 1000, f"avro-probe-{system.name}"
    file = load.folder / f"{name}.txt"
    write_lines(file, count)
    load.topics.create(name, 1)
    own = {"connector.class": f"{throughput.FILE}SourceConnector", "file": str(file), "topic": name, "tasks.max": "1"}
    await create(system, name, {**own, "key.converter": throughput.STRING, **config})
    try:
        await running(system, name)
        await arrival_rate(lambda: load.topics.visible(name, [0]), count, seconds=PROBE_SECONDS)
        payload = load.topics.first(name)
        avro = varint(LINE_BYTES - 1) + line(0)
        assert payload[:1] == bytes(1), payload
        assert payload[5:] == avro, payload  # between them is the id, which may be any
    finally:
        await delete(system, name)
        load.topics.delete(name)


def varint(number: int) -> bytes:
    """A length in Avro's encoding, for numbers below 8192."""
    zigzag = number << 1
    return bytes([zigzag]) if zigzag < 0x80 else bytes([zigzag & 0x7F | 0x80, zigzag >> 7])


async def measured(bench: Bench) -> list[Figure]:
    """The row: rounds of ours and of each variant of the peer. Ours alone, with the reason, if the peer cannot run."""
    load, ours = bench.load, await bench.ours()
    async with running_registry(bench.folder / "registry") as registry:
        bench.say("avro: starting Apache Kafka Connect with Apicurio's converter, exactly-once enabled")
        path = {"plugin.path": str(await plugins(bench.folder / "plugins"))}
        async with connect(bench.folder / "connect-avro", bench.bootstrap, exactly_once=True, properties=path) as peer:
            await probed(ours, load, our_config(registry))
            variants = PEERS
            try:
                await probed(peer, load, their_config(registry))
            except (AssertionError, SystemExit, httpx.HTTPError) as error:
                variants = {}
                bench.say(f"avro: the peer cannot do it, so ours is alone: {error}")
            mine: list[float] = []
            theirs: dict[str, list[float]] = {variant: [] for variant in variants}
            for turn in range(bench.options.rounds):
                about = f"avro {turn + 1}/{bench.options.rounds}"
                mine.append(await throughput.file_source(ours, load, our_config(registry)))
                bench.say(f"{about}: keelman {number(mine[-1])}/s")
                for variant, more in variants.items():
                    theirs[variant].append(await throughput.file_source(peer, load, {**their_config(registry), **more}))
                    bench.say(f"{about}: connect, {variant}: {number(theirs[variant][-1])}/s")
    if not theirs:
        return [alone("avro", "records/s", mine, statistics.median(mine), "")]
    return compared("avro", "records/s", mine, theirs, GOAL)
