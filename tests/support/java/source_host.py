"""Hosts the copy runs of Java source tasks, many in one process, behind the interface of a Connect worker's REST API.

As a program (`python -m support.java.source_host <spec.json>`) it plays the steps of `recorded.java.source_calls_steps`
and prints the notes of their tasks.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from keelman.api.copy.v1.ticket_pb2 import DELIVERY_GUARANTEE_AT_LEAST_ONCE, DELIVERY_GUARANTEE_EXACTLY_ONCE
from recorded.java.source_calls_steps import IN_ONE_PROCESS, WORKER, play
from support.copying.harness import STATES, Run, ticket
from support.copying.orders import DRAIN
from support.java.kit import found
from support.places import with_tests

TASK = "acme.CallSourceConnector$CallTask"
SECONDS = 300


class SourceHost:
    """One copy run a connector, from its configuration until it is deleted."""

    def __init__(self, bootstrap: str, classes: str, *, exactly_once: bool) -> None:
        self._bootstrap, self._classes = bootstrap, classes
        self._delivery = DELIVERY_GUARANTEE_EXACTLY_ONCE if exactly_once else DELIVERY_GUARANTEE_AT_LEAST_ONCE
        self._runs: dict[str, Run] = {}

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """A worker's answer, as far as the steps read it."""
        name = path.split("/")[2]
        if method == "GET":
            state = "FAILED" if self._state(name) == "FAILED" else "RUNNING"
            return httpx.Response(200, json={"tasks": [{"state": state}]})
        await asyncio.to_thread(self._begin if method == "PUT" else self._end, name, body)
        return httpx.Response(200)

    def _begin(self, name: str, body: Any) -> None:
        config = {**body, "task.class": TASK, "classes": self._classes}
        granted = ticket(self._bootstrap, config, delivery=self._delivery, worker_config=WORKER)
        self._runs[name] = Run(granted, find=found)

    def _end(self, name: str, _body: Any) -> None:
        if self._state(name) != "FAILED":
            run = self._runs[name]
            run.loop.control.apply(DRAIN)
            run.loop.join(SECONDS)

    def _state(self, name: str) -> str:
        run = self._runs[name]
        while not run.updates.empty():
            run.seen.append(run.updates.get())
        return STATES.Name(run.seen[-1].state)[15:] if run.seen else ""


async def main(spec: dict[str, Any]) -> dict[str, list[str]]:
    """The notes of all cases' tasks."""
    once, bootstrap = spec["exactly_once"], spec["bootstrap"]
    host = SourceHost(bootstrap, spec["classes"], exactly_once=once)
    cases = IN_ONE_PROCESS[once]
    return await play(host.ask, bootstrap, Path(spec["folder"]), cases, name=spec["name"], exactly_once=once)


def noted_calls(folder: Path, **spec: Any) -> dict[str, list[str]]:
    """The same in a process of its own, which writes its log to the folder."""
    command = [sys.executable, "-m", "support.java.source_host", json.dumps({"folder": str(folder), **spec})]
    with (folder / "log").open("wb") as log:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=log, env=with_tests(), timeout=SECONDS, check=False
        )
    assert done.returncode == 0, (folder / "log").read_text(errors="replace")[-4000:]
    noted: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return noted


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))), flush=True)
    os._exit(0)  # otherwise it would wait for the machine
