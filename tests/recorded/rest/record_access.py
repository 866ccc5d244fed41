"""Records Apache Kafka Connect's answers to `access_steps`: writes access.json beside this file.

Run it by hand when the steps change: `python -m recorded.rest.record_access`. It starts a broker and, one after the
other, real Connect workers. The record leaves out the headers Date, which changes, and Server.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from keelman.runtime.java.maven import Lock, jars
from keelman.runtime.processes.ports import free_ports
from recorded.one_a_line import one_a_line
from recorded.rest.access_steps import SECTIONS, USERS, Step
from support.brokers.broker import running_broker
from support.servers.connect_worker import ConnectProcess

HERE = Path(__file__).parent

LEFT_OUT = ("date", "server")
SECONDS = 30.0


class ClosedWorker(ConnectProcess):
    """A worker that requires a password."""

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Sends one REST request with the password of one user."""
        async with httpx.AsyncClient(timeout=95, trust_env=False, auth=next(iter(USERS.items()))) as client:
            return await client.request(method, f"{self.url}{path}", json=body)


async def exchange(port: int, request: bytes) -> dict[str, Any]:
    """Returns status, headers and body of the answer to these bytes. The server must close the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(SECONDS):
        writer.write(request)
        answer = await reader.read()
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = [line.split(": ", 1) if ": " in line else [line.rstrip(":"), ""] for line in lines]
    remaining = sorted([name.lower(), value] for name, value in headers if name.lower() not in LEFT_OUT)
    return {"status": int(first.split()[1]), "headers": remaining, "body": body.decode("utf-8", "replace")}


async def played(steps: Sequence[Step], ports: Mapping[str, int]) -> list[dict[str, Any]]:
    """Every step with its answer."""
    results = []
    for name, listener, request in steps:
        answer = await exchange(ports[listener], request.encode())
        results.append({"name": name, "listener": listener, "request": request, "answer": answer})
    return results


def jaas_file(folder: Path) -> Path:
    """A JAAS file whose users are `USERS`."""
    passwords = folder / "passwords"
    passwords.write_text("".join(f"{name}={secret}\n" for name, secret in USERS.items()))
    file = folder / "jaas.conf"
    module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
    file.write_text(f'KafkaConnect {{\n  {module} required\n  file="{passwords}";\n}};\n')
    return file


async def main() -> None:
    """Records all sections."""
    recorded: dict[str, Any] = {}
    more = await jars(Lock.read(HERE / "basic_auth.lock"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jaas = jaas_file(folder)
        async with running_broker(folder / "broker") as servers:
            for section, (properties, steps) in SECTIONS.items():
                group = section.replace(" ", "-")
                ports = dict(zip(("main", "admin"), free_ports(2), strict=True))
                filled = {k: v.replace("{admin}", f"127.0.0.1:{ports['admin']}") for k, v in properties.items()}
                worker = ClosedWorker(folder / group, servers, group, filled, port=ports["main"])
                worker.more_jars, worker.options = more, (f"-Djava.security.auth.login.config={jaas}",)
                await worker.start()
                try:
                    recorded[section] = {"properties": properties, "steps": await played(steps, ports)}
                finally:
                    await worker.end()
                print(section, flush=True)
    (HERE / "access.json").write_text(one_a_line(recorded), encoding="utf-8")
    print(sum(len(section["steps"]) for section in recorded.values()), "steps recorded")


if __name__ == "__main__":
    asyncio.run(main())
