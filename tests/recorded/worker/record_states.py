"""Records the states that Apache Kafka Connect shows for connectors that fail: writes states.json beside this file.

Run it by hand when `state_steps` changes: `python -m recorded.worker.record_states`.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import httpx

from recorded.one_a_line import one_a_line
from recorded.worker.state_steps import STEPS, play
from support.brokers.broker import running_broker
from support.servers.connect_worker import ConnectProcess

HERE = Path(__file__).parent


async def main() -> None:
    """Records all steps."""
    played = []
    with tempfile.TemporaryDirectory() as folder:
        async with running_broker(Path(folder) / "broker") as servers, httpx.AsyncClient(timeout=90) as client:
            worker = ConnectProcess(Path(folder) / "worker", servers, "states", {})
            await worker.start()

            async def ask(method: str, path: str, body: Any) -> tuple[int, Any]:
                answer = await client.request(method, worker.url.rstrip("/") + path, json=body)
                return answer.status_code, answer.json() if answer.content else None

            try:
                for step in STEPS:
                    played.append(await play(ask, step))
                    print(played[-1], flush=True)
            finally:
                await worker.end()
    (HERE / "states.json").write_text(one_a_line(played), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
