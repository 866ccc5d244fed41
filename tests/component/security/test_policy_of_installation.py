"""An installation with a strict policy, as a user starts it: its workers hold every connector to it."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from keelman.model.errors import InvalidArgument
from keelman.rpc.channels import channel
from support.cli.system import FILE, Keelman
from support.eventually import eventually
from support.state.dedicated import Dedicated, file_source

pytestmark = pytest.mark.component


@pytest_asyncio.fixture
async def strict(tmp_path: Path) -> AsyncIterator[Keelman]:
    """A running system with a worker cluster `demo`."""
    keelman = Keelman(tmp_path / "home")
    try:
        await keelman.ok("up", "--detach", "--free-ports", "--set", "state.connector_policy=strict")
        await keelman.ok("create", "wc", "demo", "--count", "1", "--start", "--wait")
        yield keelman
    finally:
        await keelman.cleaned()


async def test_connectors_have_their_cluster_s_data_folder_and_no_more(strict: Keelman) -> None:
    home, own = strict.home, strict.home / "data" / "demo"
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    (own / "in").write_text("mine\n")
    (own / "link").symlink_to(home / "state" / "secrets.key")
    properties = home / "workloads" / "worker-demo-0" / "worker.properties"
    base = f"{strict.system['http']}/clusters/demo"
    source = {"connector.class": f"{FILE}SourceConnector", "topic": "lines"}
    spark = {"connector.class": "SparkSource", "spark.format": "text", "spark.path": str(own), "topic": "lines"}
    async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=300) as rest:
        for config in (
            {**source, "file": str(home / "state" / "secrets.key")},
            {**source, "file": str(properties)},
            {**source, "file": str(own / "link")},
            {**source, "file": str(own / ".." / "other" / "in")},
            {"connector.class": f"{FILE}SinkConnector", "topics": "lines", "file": str(home / "workloads" / "evil.py")},
            {**spark, "spark.python.source": "evil:X"},
            {**spark, "spark.path": str(home)},
            {"connector.class": f"{FILE}SinkConnector", "topics": "demo.connect-configs", "file": str(own / "out")},
        ):
            answer = await rest.post("/connectors", json={"name": "c", "config": config})
            assert answer.status_code == 400, (config, answer.text)
            answer = await rest.post("/connectors/c/preview", json={"config": config})
            assert answer.status_code == 400, (config, answer.text)
        words = [
            word for key, text in {**source, "file": str(properties)}.items() for word in ("--set", f"{key}={text}")
        ]
        ran = await strict.run("create", "connector", "demo/c", *words)
        assert ran.code != 0
        assert f"legal are files below {own}" in ran.err
        assert "an administrator allows it by keelman.policy.installation.paths.allowed" in ran.err

        copied = {"connector.class": f"{FILE}SinkConnector", "topics": "lines", "file": str(own / "out")}
        for name, config in (("in", {**source, "file": str(own / "in")}), ("out", copied)):
            answer = await rest.post("/connectors", json={"name": name, "config": config})
            assert answer.status_code == 201, answer.text
        await eventually(lambda: (own / "out").exists() and b"mine" in (own / "out").read_bytes())

    for words in (
        ("create", "wc", "bad", "--count", "1", "--set", "keelman.policy.installation.paths.allowed=*"),
        ("update", "wc", "demo", "--set", "keelman.policy.installation.code.by.name=allowed"),
    ):
        ran = await strict.run(*words)
        assert ran.code != 0, words
        assert "leave it out: it follows from state.connector_policy" in ran.err
    async with channel(strict.system["state"]) as link:
        dedicated = Dedicated(link)
        with pytest.raises(InvalidArgument, match=r"may not name the host 127\.0\.0\.1:22"):
            await dedicated.create("probe", file_source(own / "in", "lines"), "127.0.0.1:22")
