"""A user's trials on a worker: requests to its REST API, and commands."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keelman.cli.main import main
from support.worker.processes import WorkerProcess

WORD = "tell-nobody-4711"
PLAIN = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


async def asked(worker: WorkerProcess, path: str, body: Any = None) -> dict[str, Any]:
    answer = await worker.ask("POST", path, body)
    assert answer.status_code == 200, answer.text
    fields: dict[str, Any] = answer.json()
    return fields


async def typed(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The output of a command."""
    capsys.readouterr()
    assert await asyncio.to_thread(main, words) == 0, capsys.readouterr().err
    return capsys.readouterr().out
