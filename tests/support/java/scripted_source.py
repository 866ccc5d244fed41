"""A task of acme.ScriptedSource in the shared process, its notes, and the records in its topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keelman.api.copy.v1.ticket_pb2 import DELIVERY_GUARANTEE_AT_LEAST_ONCE, DELIVERY_GUARANTEE_EXACTLY_ONCE
from support.copying.harness import OFFSET_TOPIC, committed_offsets, latest
from support.java.shared_host import HostedRun, hosted_java
from support.kafka.topics import messages
from support.waiting import until

ONCE, AT_LEAST_ONCE = DELIVERY_GUARANTEE_EXACTLY_ONCE, DELIVERY_GUARANTEE_AT_LEAST_ONCE


class Scripted:
    """A task of acme.ScriptedSource: its configuration, its notes, and the records in its topics."""

    def __init__(self, bootstrap: str, name: str, classes: Path, folder: Path) -> None:
        self.bootstrap, self.name = bootstrap, name
        self.calls, self.log = folder / "calls", folder / "log"
        self.config = {
            "name": name,
            "connector.class": "acme.ScriptedSource",
            "task.class": "acme.ScriptedSource$ScriptedTask",
            "classes": str(classes),
            "log": str(self.calls),
            "topics": name,
        }

    def hosted(
        self, die: list[Any] | None = None, worker: dict[str, str] | None = None, delivery: int = ONCE, **config: Any
    ) -> Any:
        """A run that copies, with additional keys, in which an underscore replaces a dot."""
        spec: dict[str, Any] = {"fields": {"worker_config": worker or {}, "delivery": delivery}, "long_seconds": 1}
        spec |= {"die": die} if die else {}
        self.log.unlink(missing_ok=True)
        fields = {**self.config, **{key.replace("_", "."): value for key, value in config.items()}}
        return hosted_java(self.bootstrap, fields, self.log, **spec)

    def noted(self, word: str) -> list[str]:
        """The task's notes under a word, in order."""
        text = self.calls.read_text() if self.calls.exists() else ""
        return [line.partition(" ")[2] for line in text.splitlines() if line.split(" ")[0] == word]

    def copied(self, records: int, process: HostedRun, seconds: float = 300.0) -> None:
        """Returns once so many records are committed."""

        def done() -> bool:
            assert process.poll() is None, self.ended_with()
            return latest(self.log).get("records", 0) >= records

        until(done, self.name, seconds)

    def ended_with(self) -> str:
        """The end of the log."""
        return self.log.read_text(errors="replace")[-3000:]

    def stopped(self, process: HostedRun) -> None:
        """Drains it."""
        process.terminate()
        assert process.wait(60) == 0, self.ended_with()

    def values(self, topic: str = "") -> list[str]:
        """Committed values, each partition in its order."""
        return [(message.value() or b"").decode() for message in messages(self.bootstrap, topic or self.name)]

    def offsets(self) -> dict[str, int]:
        """The committed offsets, by source partition."""
        actual_committed_offsets = committed_offsets(self.bootstrap, OFFSET_TOPIC, self.name)
        return {json.loads(key)[1]["part"]: json.loads(value)["n"] for key, value in actual_committed_offsets}

    def ends(self, process: HostedRun) -> dict[str, Any]:
        """The last report of a process that is about to end by itself."""
        process.wait(60)
        return latest(self.log)
