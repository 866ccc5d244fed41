"""The clients' requests and their answers: one operation a request. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

NEVER = math.inf


@dataclass
class Operation:
    """One request. Its seconds count from the round's begin; `status` is 0 when no answer came."""

    kind: str
    connector: str = ""
    """Empty for an operation on all connectors."""
    body: Any = None
    begun: float = 0.0
    ended: float = NEVER
    status: int = 0
    answer: Any = None
    worker: int = 0
    """The worker that got the request."""
    client: int = 0
    query: str = ""
    error: str = ""

    @property
    def message(self) -> str:
        """The message of an answer that refuses."""
        told = self.answer.get("message") if isinstance(self.answer, dict) else None
        return told if isinstance(told, str) else ""

    def __str__(self) -> str:
        told = [f"{self.begun:.3f}..{self.ended:.3f} worker {self.worker}: {self.kind}{self.query}"]
        told += [f"{self.connector}", f"{json.dumps(self.body)}" if self.body is not None else ""]
        told += [f"-> {self.status}", self.error or self.message]
        return " ".join(word for word in told if word)


def write(file: Path, operations: Iterable[Operation]) -> None:
    """Writes a line of JSON for each operation, in the order of their begins."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(asdict(operation)) for operation in sorted(operations, key=lambda value: value.begun)]
    file.write_text("".join(f"{line}\n" for line in lines))
