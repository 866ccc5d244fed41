"""Hosts in an unsecured network (`--workload-trust https`).

Brokers and workers that authenticate their callers copy records and are reached by the gateway; those that authenticate
no caller are not started and report the missing setting.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.certificates import PASSWORD, Authority
from support.eventually import eventually
from support.hosts.networks import cabled
from support.hosts.operator import Commands, first_host, operated

pytestmark = [pytest.mark.component, pytest.mark.slow]
NODES = ("n1", "n2")
WAIT = ("--wait", "--timeout", "600")


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    with cabled(tmp_path, NODES) as system, operated(system) as opened:
        yield opened


async def run(commands: Commands, *words: str, code: int = 0) -> str:
    return await asyncio.to_thread(commands.run, *words, code=code, seconds=620)


def secured(folder: Path, authority: Authority, *addresses: str) -> list[str]:
    """Properties of workers whose https accepts only clients with a certificate of the authority."""
    fields = {
        "keystore.location": str(authority.issue("worker", *addresses).write_pkcs12(folder / "worker.p12")),
        "keystore.password": PASSWORD,
        "truststore.location": str(authority.write_trust(folder / "trust.p12")),
        "truststore.password": PASSWORD,
        "client.auth": "required",
    }
    return [word for key, value in fields.items() for word in ("--set", f"listeners.https.ssl.{key}={value}")]


async def test_what_asks_who_calls_runs_and_nothing_else(commands: Commands, tmp_path: Path) -> None:
    authority = Authority()
    plane = authority.issue("plane")
    files = {"worker_ca": authority.pem, "worker_certificate": plane.chain_pem, "worker_key": plane.key_pem}
    for name, text in files.items():
        (tmp_path / f"{name}.pem").write_text(text)
    asks = "".join(f'{name} = "{tmp_path}/{name}.pem"\n' for name in files)
    await first_host(commands, state=asks, gateway=asks)
    for node in NODES:
        commands.join(node, "--workload-trust", "https")
    for node in NODES:
        await eventually(lambda node=node: commands.in_state(node, "ONLINE"), what=f"{node} is online")  # type: ignore[misc]
    await run(commands, "create", "broker-cluster", "default", "--nodes", ",".join(NODES), *WAIT)
    addresses = [host.address for host in commands.system.hosts.values()]
    keys = secured(tmp_path, authority, *addresses)
    await run(commands, "create", "worker-cluster", "demo", "--https", *keys, "--count", "2", "--start", *WAIT)

    (lines := tmp_path / "lines").write_text("one\ntwo\n")
    config = ("connector.class=FileStreamSource", f"file={lines}", "topic=lines")
    await run(commands, "create", "topic", "lines", "--partitions", "1", *WAIT)
    sets = [word for assignment in config for word in ("--set", assignment)]
    await run(commands, "create", "connector", "lines", "--cluster", "demo", *sets, *WAIT)

    def copied() -> bool:
        tree = json.loads(commands.run("get", "topic", "lines", "-o", "json"))
        (part,) = tree["status"]["brokers"]["partitions"]
        return int(part.get("end_offset", 0)) >= 2

    await eventually(copied, what="the lines are on the brokers")
    await asked_by_a_stranger(commands, authority)

    for words, reason in (
        (("--count", "1"), "would be plain http: give its cluster https"),
        (("--count", "1", "--https", *keys[:4]), "would authenticate no caller"),
    ):
        await run(commands, "create", "worker-cluster", "open", *words)
        begun = time.monotonic()
        printed = await run(commands, "start", "worker-cluster", "open", *WAIT, code=1)
        assert reason in printed
        assert time.monotonic() - begun < 120, "it is reported at once, and not after the whole time"
        await run(commands, "delete", "worker-cluster", "open", *WAIT)


async def asked_by_a_stranger(commands: Commands, authority: Authority) -> None:
    """A worker's REST refuses clients without a certificate."""
    document = json.loads(commands.run("get", "workers", "--cluster", "demo", "-o", "json"))
    url = (document["items"] if isinstance(document, dict) else document)[0]["rest_url"]
    assert url.startswith("https://203.0.113.")
    async with httpx.AsyncClient(verify=ssl.create_default_context(cadata=authority.pem), trust_env=False) as client:
        with pytest.raises((httpx.HTTPError, ssl.SSLError)):
            await client.get(url)
