"""Records Apache Kafka Connect's records in its three topics after `topics_steps`: writes topics.json beside this file.

Run it by hand when the steps change: `python -m recorded.worker.record_topics`. It starts a broker and a real Connect
worker. The record has the folder's name and the worker's port as they were; comparisons leave them out.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from recorded.one_a_line import one_a_line
from recorded.worker.topics_steps import CONFIGS, GROUP, OFFSETS, PROPERTIES, STATUS, play, prepare, written
from support.brokers.broker import running_broker
from support.servers.connect_worker import ConnectProcess

HERE = Path(__file__).parent

FOLDER = Path("/tmp/keelman-topics")  # in keys, so in partitions too


async def main() -> None:
    """Plays the steps and writes the topics' records."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        async with running_broker(Path(name) / "broker") as bootstrap:
            await prepare(bootstrap, FOLDER)
            worker = ConnectProcess(Path(name) / "connect", bootstrap, GROUP, PROPERTIES)
            await worker.start()
            try:
                await play(worker.ask, FOLDER)
            except AssertionError:
                print(worker.output[-5000:])
                raise
            finally:
                await worker.end()
            answer = {
                "worker": f"127.0.0.1:{worker.port}",
                **{topic: await written(bootstrap, topic) for topic in (CONFIGS, OFFSETS, STATUS)},
            }
    (HERE / "topics.json").write_text(one_a_line(answer))


if __name__ == "__main__":
    asyncio.run(main())
