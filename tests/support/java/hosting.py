"""The process of `support.java.shared_host`: hosts copy runs of the kit's connectors, previews and replays for them.

It reads an order a line, and answers a line when a piece of work has ended.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any, TextIO

from keelman.connectors.java.source import task_calls
from keelman.connectors.plugins.previews import preview
from keelman.engine.dead_letters.replay import replay
from support.copying.harness import copied
from support.java.kit import found

LONG_SECONDS = task_calls.LONG_SECONDS


class Hosting:
    """The work of the process."""

    def __init__(self, answers: TextIO) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._stops: dict[int, threading.Event] = {}

    def take(self, order: dict[str, Any]) -> None:
        """Starts or drains a run, as ordered."""
        if "drain" in order:
            self._stops[order["drain"]].set()
            return
        log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        self._stops[order["number"]] = threading.Event()
        threading.Thread(target=self._work, args=(order,), daemon=True).start()

    def _work(self, order: dict[str, Any]) -> None:
        code, answer = 1, {}
        try:
            code, answer = self._done(order)
        finally:
            sys.stdout.flush()
            with self._lock:
                self._answers.write(json.dumps({"number": order["number"], "code": code, "answer": answer}) + "\n")
                self._answers.flush()

    def _done(self, order: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "preview" in order:
            request = order["preview"]
            return 0, preview(found(request["config"]["connector.class"]), request)
        if "replay" in order:
            kind = found(order["replay"]["config"]["connector.class"])
            return 0, replay(order["replay"], kind.open_steps)
        spec = order["host"]
        task_calls.LONG_SECONDS = spec.get("long_seconds", LONG_SECONDS)
        return copied(spec, found, self._stops[order["number"]]), {}


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "w") as pipe:
        hosting = Hosting(pipe)
        for line in sys.stdin:
            hosting.take(json.loads(line))
    os._exit(0)  # otherwise it would wait for the machine
