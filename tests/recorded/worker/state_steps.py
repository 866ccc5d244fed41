"""Steps with connectors that fail, and how to tell that their states have settled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

TASK = {"connector.class": "FileStreamSink", "topics": "states", "file": "/nowhere/at/all/out"}
CONNECTOR = {
    "connector.class": "MirrorSource",
    "source.cluster.alias": "there",
    "target.cluster.alias": "here",
    "source.cluster.bootstrap.servers": "nowhere.invalid:1",
    "target.cluster.bootstrap.servers": "nowhere.invalid:1",
    "admin.timeout.ms": "1000",
}
ALL, FAILED_ONLY = "restart?includeTasks=true", "restart?includeTasks=true&onlyFailed=true"
# Name of the connector, then the step: a creation, or a method and the end of a path.
STEPS: tuple[tuple[str, str, Any], ...] = (
    ("task", "create", {"config": TASK}),
    ("task", "PUT", "pause"),
    ("task", "PUT", "resume"),
    ("task", "POST", FAILED_ONLY),
    ("task", "PUT", "pause"),
    ("task", "POST", FAILED_ONLY),
    ("task", "PUT", "resume"),
    ("task", "PUT", "stop"),
    ("task", "PUT", "resume"),
    ("begun-paused", "create", {"config": TASK, "initial_state": "PAUSED"}),
    ("begun-paused", "POST", ALL),
    ("begun-paused", "PUT", "resume"),
    ("begun-stopped", "create", {"config": TASK, "initial_state": "STOPPED"}),
    ("begun-stopped", "POST", ALL),
    ("begun-stopped", "PUT", "pause"),
    ("begun-stopped", "PUT", "resume"),
    ("connector", "create", {"config": CONNECTOR}),
    ("connector", "PUT", "pause"),
    ("connector", "PUT", "resume"),
    ("connector", "POST", FAILED_ONLY),
    ("connector", "PUT", "stop"),
    ("connector", "PUT", "resume"),
)
SETTLED_SECONDS = 3.0
MAX_SECONDS = 120.0

Ask = Callable[[str, str, Any], Awaitable[tuple[int, Any]]]


async def play(ask: Ask, step: tuple[str, str, Any], *, wanted: list[str] | None = None) -> dict[str, Any]:
    """Does a step; returns its code, and the states once they are stable or as `wanted`.

    The connector's state comes first, then its tasks' states.
    """
    name, method, what = step
    if method == "create":
        code, _ = await ask("POST", "/connectors", {"name": name, **what, "config": {"name": name, **what["config"]}})
    else:
        code, _ = await ask(method, f"/connectors/{name}/{what}", None)
    return {"step": [name, method, what], "code": code, "states": await settled(ask, name, wanted)}


async def settled(ask: Ask, name: str, expected: list[str] | None) -> list[str]:
    """The states once they have not changed for a while; the while is longer unless they are the expected ones."""
    begun = changed = time.monotonic()
    last: list[str] = []
    while (now := time.monotonic()) - begun < MAX_SECONDS and now - changed < (
        SETTLED_SECONDS if expected is None else 0.5 if last == expected else MAX_SECONDS
    ):
        _, status = await ask("GET", f"/connectors/{name}/status", None)
        result = (
            [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
            if "connector" in status
            else []
        )
        if result != last:
            last, changed = result, now
        await asyncio.sleep(0.1)
    return last
