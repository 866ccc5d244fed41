"""Records Apache Kafka Connect's answers about published Java plugins: writes java_plugins.json beside this file.

Run it by hand when the steps or a plugin's lock change: `python -m recorded.java.record_java_plugins`. It starts a
broker and a real Connect worker with the plugins in its `plugin.path`.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from recorded.java.java_plugins_steps import play, told
from recorded.one_a_line import one_a_line
from support.brokers.broker import running_broker
from support.java.published import FILES, MONGO, POSTGRES, plugin_path
from support.servers.connect_worker import ConnectProcess

HERE = Path(__file__).parent


async def main() -> None:
    """Sends the requests and writes the answers."""
    properties = {"plugin.path": await plugin_path(POSTGRES, FILES, MONGO)}
    properties["exactly.once.source.support"] = "enabled"
    with tempfile.TemporaryDirectory() as name:
        async with running_broker(Path(name) / "broker") as bootstrap:
            worker = ConnectProcess(Path(name) / "connect", bootstrap, "recorded", properties)
            await worker.start()
            try:
                actual_play = await play(worker.ask)
            finally:
                await worker.end()
    (HERE / "java_plugins.json").write_text(one_a_line(told(actual_play)))


if __name__ == "__main__":
    asyncio.run(main())
