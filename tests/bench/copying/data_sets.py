"""SparkSource from Parquet and SparkSink to Parquet, both exactly once: rows a second from the request to the last."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.measuring.data import Topics, line
from bench.measuring.figures import Figure, alone
from bench.measuring.systems import Keelman, create, delete, keelman
from support.brokers.broker import running_broker
from support.eventually import eventually

ROWS, FILES = 3_000_000, 12
GOALS = {"spark-source": ">= 350000", "spark-sink": ">= 250000"}
SECONDS = 600


async def measured(folder: Path, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Each round reads the files into a topic of its own, and writes that topic to a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_parquet(folder / "rows")
    rates: dict[str, list[float]] = {name: [] for name in GOALS}
    async with running_broker(folder / "broker") as bootstrap:
        topics = Topics(bootstrap)
        async with keelman(folder / "keelman", bootstrap) as system:
            for number in range(rounds):
                topic = f"rows-{number}"
                topics.create(topic)
                for name, copy in (("spark-source", _read), ("spark-sink", _write)):
                    seconds = await copy(system, topics, topic, folder)
                    rates[name].append(ROWS / seconds)
                    say(f"{name}: {ROWS:,} rows in {seconds:.1f} s, {ROWS / seconds:,.0f} a second")
                topics.delete(topic)
    return [alone(name, "rows/s", values, statistics.median(values), GOALS[name]) for name, values in rates.items()]


def _write_parquet(folder: Path) -> None:
    folder.mkdir()
    each = ROWS // FILES
    for number in range(FILES):
        values = pa.array([line(n) for n in range(number * each, (number + 1) * each)], pa.binary())
        pq.write_table(pa.table({"value": values}), folder / f"{number:02}.parquet")


async def _read(system: Keelman, topics: Topics, topic: str, folder: Path) -> float:
    partitions = topics.partitions(topic)
    config = {"connector.class": "SparkSource", "spark.format": "parquet", "spark.path": str(folder / "rows")}
    return await _timed(system, topic, {**config, "topic": topic}, lambda: topics.visible(topic, partitions) >= ROWS)


async def _write(system: Keelman, topics: Topics, topic: str, folder: Path) -> float:
    out = folder / f"out-{topic}"
    config = {"connector.class": "SparkSink", "spark.format": "parquet", "spark.path": str(out)}

    def is_written() -> bool:
        return sum(pq.ParquetFile(file).metadata.num_rows for file in out.glob("*.parquet")) >= ROWS

    return await _timed(system, f"{topic}-out", {**config, "topics": topic}, is_written)


async def _timed(system: Keelman, name: str, config: Mapping[str, str], is_done: Callable[[], bool]) -> float:
    begun = time.monotonic()
    await create(system, name, config)
    await eventually(is_done, seconds=SECONDS, every=0.2, what=f"{name} has copied all; see {system.folder}")
    seconds = time.monotonic() - begun
    await delete(system, name)
    return seconds
