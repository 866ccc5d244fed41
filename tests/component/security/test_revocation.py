"""Rights that are taken away end the calls in progress, too."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import grpc
import pytest

from keelman.api.event.v1.watch_service_pb2 import WatchRequest
from keelman.model.access.roles import token_digest
from keelman.rpc.channels import channel
from keelman.rpc.generated import stub_of
from support.gateway.system import running_system

pytestmark = pytest.mark.component
MOST_SECONDS = 5.0


def lines(role: str, more: str = "") -> str:
    return f"[[token]]\nsha256 = '{token_digest('of-ada')}'\nname = 'ada'\nrole = '{role}'\n{more}"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", grpc.StatusCode.UNAUTHENTICATED),
        (lines("viewer", "expires = 2020-01-01T00:00:00Z\n"), grpc.StatusCode.UNAUTHENTICATED),
        (lines("viewer", "clusters = ['other']\n"), None),
    ],
    ids=["taken back", "expired", "narrowed"],
)
async def test_a_watch_ends_with_its_caller(tmp_path: Path, content: str, code: grpc.StatusCode | None) -> None:
    file = tmp_path / "access.toml"
    file.write_text(lines("viewer"))
    async with (
        running_system(tmp_path, {}, {"access-file": str(file)}) as system,
        channel(system.gateway.address, token="of-ada") as link,
    ):
        coming = asyncio.ensure_future(_to_its_end(stub_of(link, "event", "watch").Watch(WatchRequest())))
        done, _ = await asyncio.wait((coming,), timeout=MOST_SECONDS)
        assert not done, "the watch stays open"
        file.write_text(content)
        changed = time.monotonic()
        done, _ = await asyncio.wait((coming,), timeout=2 * MOST_SECONDS)
        if code is None:
            assert not done, "a caller of some clusters may watch: the events of these alone"
            coming.cancel()
            return
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            coming.result()
        assert ended.value.code() is code
        assert time.monotonic() - changed < 2 * MOST_SECONDS


async def _to_its_end(watch: object) -> None:
    async for _ in watch:  # type: ignore[attr-defined]
        pass
