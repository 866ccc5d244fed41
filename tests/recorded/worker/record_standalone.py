"""Records the answers and files of Connect's standalone worker in standalone.json and java_map.json beside this module.

Run it by hand: `python -m recorded.worker.record_standalone`. It starts a broker and real standalone workers: one
answers `standalone_steps`, the second writes the recorded file of offsets, the third reads such a file of ours, and its
offsets must agree.
"""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from aiokafka.admin import NewTopic

from keelman.connect.java.maps import dump_map, load_map
from keelman.connect.offsets import key_bytes, value_bytes
from keelman.kafka.clients import admin_client
from recorded.one_a_line import one_a_line
from recorded.worker.standalone_steps import SOURCE, STEPS, filled
from support.brokers.broker import running_broker
from support.eventually import eventually
from support.servers.connect_worker import ConnectProcess

HERE = Path(__file__).parent

QUICK = {"offset.flush.interval.ms": "300"}
MANY = 40


async def main() -> None:
    """Records everything."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with running_broker(folder / "broker") as servers:
            async with admin_client({"bootstrap.servers": servers}, client_id="recorder") as admin:
                await admin.create_topics([NewTopic("alone", 1, 1)])
            await record_answers(folder, servers)
            await record_files(folder, servers)


def connector(folder: Path) -> tuple[Path, Path]:
    """Writes a connector's file and its input, and returns both paths."""
    source = folder / "input"
    source.write_text("first\nsecond\n")
    file = folder / "src.properties"
    file.write_text(f"name=src\nconnector.class={SOURCE}\nfile={source}\ntopic=alone\n")
    return file, source


async def record_answers(folder: Path, servers: str) -> None:
    """Records the answers to all steps."""
    file, source = connector(folder)
    worker = ConnectProcess(folder / "answers", servers, "alone", QUICK, standalone=(file,))
    await worker.start()
    hidden = {str(source): "{input}", f"127.0.0.1:{worker.port}": "{worker}"}
    played: list[dict[str, Any]] = []
    try:
        await eventually(lambda: offsets(worker), seconds=90, what="src has reported its offset")
        for method, path, body in STEPS:
            if path.startswith("until "):
                await eventually(partial(state_is, worker, path.removeprefix("until "), body))
                continue
            answer = await worker.ask(method, path, filled(body, {"{input}": str(source)}))
            told = json.loads(answer.text) if answer.content else None
            played.append({"method": method, "path": path, "status": answer.status_code, "body": filled(told, hidden)})
    finally:
        await worker.end()
    write("standalone.json", played)


async def offsets(worker: ConnectProcess) -> list[Any]:
    """Returns the source's offsets."""
    return list((await worker.ask("GET", "/connectors/src/offsets")).json().get("offsets", ()))


async def state_is(worker: ConnectProcess, path: str, state: str) -> bool:
    """Whether the connector has this state."""
    return bool((await worker.ask("GET", path)).json()["connector"]["state"] == state)


async def record_files(folder: Path, servers: str) -> None:
    """Records small and large files that Java writes, and the offsets that Java reads from a file of ours."""
    file, _ = connector(folder)
    worker = ConnectProcess(folder / "files", servers, "alone", QUICK, standalone=(file,))
    await worker.start()
    files = {}
    try:
        await eventually(lambda: offsets(worker), seconds=90)
        await eventually(lambda: worker.offset_file.exists() and len(load_map(worker.offset_file.read_bytes())) == 1)
        files["one"] = worker.offset_file.read_bytes()
        await worker.ask("PUT", "/connectors/src/stop")
        await eventually(lambda: state_is(worker, "/connectors/src/status", "STOPPED"))
        many = [{"partition": {"filename": f"/é/{n}"}, "offset": {"position": n}} for n in range(MANY)]
        answer = await worker.ask("PATCH", "/connectors/src/offsets", {"offsets": many})
        assert answer.status_code == 200, answer.text
        await worker.ask("PATCH", "/connectors/src/offsets", {"offsets": [{**many[0], "offset": None}]})
    finally:
        await worker.end()
    files["many"] = worker.offset_file.read_bytes()

    ours = {key_bytes("src", {"filename": f"/é/{n}"}): value_bytes({"position": n}) for n in range(MANY)}
    worker.offset_file.write_bytes(dump_map({**ours, b"no key of Connect's": None}))
    await worker.start()
    try:
        told = {(o["partition"]["filename"], o["offset"]["position"]) for o in await offsets(worker)}
    finally:
        await worker.end()
    assert told >= {(f"/é/{n}", n) for n in range(MANY)}, told
    write("java_map.json", {name: base64.b64encode(data).decode() for name, data in files.items()})


def write(name: str, value: Any) -> None:
    """Writes a record."""
    (HERE / name).write_text(one_a_line(value), encoding="utf-8")
    print(name)


if __name__ == "__main__":
    asyncio.run(main())
