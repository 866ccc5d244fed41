"""Records Apache Kafka Connect's answers about plugins and configurations: python -m recorded.worker.record_validate

Starts one broker and, one after another, a worker for each of the kinds in `validate_cases`, and writes validate.json
beside this file. The record leaves out documentation texts, which are not ours, and values that depend on the run.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from recorded.worker.validate_cases import WORKERS, Case, cases
from support.brokers.broker import running_broker
from support.servers.connect_worker import ConnectProcess

FILE = Path(__file__).with_name("validate.json")
_OBJECT = re.compile(r"(\$\$Lambda[\w/$]*|[A-Za-z_$.]+)@[0-9a-f]{4,}")


class Pool:
    """Values that many answers share, each kept once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.fields: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, value: Any) -> int:
        """The place of the value."""
        text = json.dumps(value, sort_keys=False)
        if text not in self._places:
            self._places[text] = len(self.values)
            self.values.append(value)
        return self._places[text]


def kept(answer: Any, definitions: Pool, values: Pool) -> Any:
    """An answer without documentation; definitions and values by their places."""
    if isinstance(answer, dict) and "configs" in answer:
        pairs = [
            [-1 if c["definition"] is None else defined(c["definition"], definitions), values.place(c["value"])]
            for c in answer["configs"]
        ]
        return {**answer, "configs": pairs}
    if isinstance(answer, list) and answer and "documentation" in answer[0]:
        return {"keys": [defined(item, definitions) for item in answer]}
    return answer


def defined(definition: dict[str, Any], pool: Pool) -> int:
    """The place of a definition without its prose; the names and order of its fields are kept once."""
    pool.fields = list(definition)
    return pool.place({key: value for key, value in definition.items() if key != "documentation"})


async def asked(client: httpx.AsyncClient, case: Case) -> tuple[int, Any]:
    """Status and answer."""
    path, _, query = case.path.partition("?")
    target = quote(path) + (f"?{query}" if query else "")
    answer = await client.request(case.method, target, json=case.body)
    return answer.status_code, json.loads(_OBJECT.sub(r"\1@", answer.text)) if answer.content else None


async def record() -> None:
    """Sends all requests and writes the file."""
    definitions, values, results = Pool(), Pool(), []
    with tempfile.TemporaryDirectory() as folder:
        async with running_broker(Path(folder, "broker")) as bootstrap:
            for name, properties in WORKERS.items():
                worker = ConnectProcess(Path(folder, name), bootstrap, f"validate-{name}", properties)
                await worker.start()
                try:
                    async with httpx.AsyncClient(base_url=worker.url, timeout=95, trust_env=False) as client:
                        for case in (case for case in cases() if case.worker == name):
                            status, answer = await asked(client, case)
                            answer = kept(answer, definitions, values)
                            results.append({**case._asdict(), "status": status, "answer": answer})
                finally:
                    await worker.end()
    lines = [json.dumps(result, ensure_ascii=False, separators=(",", ":")) for result in results]
    parts = {"fields": definitions.fields, "definitions": definitions.values, "values": values.values}
    text = ",\n".join(
        f'"{name}": [\n' + ",\n".join(json.dumps(v, ensure_ascii=False, separators=(",", ":")) for v in rows) + "\n]"
        for name, rows in parts.items()
    )
    FILE.write_text("{\n" + text + ',\n"cases": [\n' + ",\n".join(lines) + "\n]\n}\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(record())
