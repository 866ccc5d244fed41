"""Tokens of an OpenID Connect issuer are good at a real gateway, and its revoked keys end open streams."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import grpc
import httpx
import pytest

from keelman.api.connect.v1.secret_service_pb2 import CreateSecretRequest
from keelman.api.event.v1.watch_service_pb2 import WatchRequest
from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.model.errors import PermissionDenied, Unauthenticated
from keelman.rpc.channels import channel
from keelman.rpc.generated import stub_of
from support.eventually import eventually
from support.gateway.issuer import AUDIENCE, Issuer
from support.gateway.system import running_system

pytestmark = pytest.mark.component
RULES = """
[[issuer.rule]]
claim = "groups"
value = "admins"
role = "admin"
[[issuer.rule]]
claim = "groups"
value = "eyes"
role = "viewer"
"""


async def test_a_token_is_good_for_grpc_and_http_and_a_new_key_is_found(tmp_path: Path) -> None:
    issuer, file = Issuer(), tmp_path / "access.toml"
    issuer.add_key("first", "RS256")
    async with issuer.served():
        lines = f"url = '{issuer.url}'\naudience = '{AUDIENCE}'\nname_claim = 'email'\nrefresh_seconds = 1\n"
        file.write_text(f"[[issuer]]\n{lines}{RULES}")
        async with (
            running_system(tmp_path, {}, {"access-file": str(file)}) as system,
            httpx.AsyncClient(base_url=system.http, trust_env=False, timeout=300) as http,
        ):

            async def nodes(token: str) -> None:
                async with channel(system.gateway.address, token=token) as link:
                    await stub_of(link, "node", "node").ListNodes(ListNodesRequest())
                answer = await http.get("/v0/nodes", headers={"Authorization": f"Bearer {token}"})
                assert answer.status_code == 200, answer.text
                assert (await http.get("/v0/nodes", auth=("any", token))).status_code == 200

            await nodes(issuer.token("first", groups=["eyes"], email="eve@example.org"))
            viewer = issuer.token("first", groups="eyes", email="eve@example.org")
            async with channel(system.gateway.address, token=viewer) as link:
                with pytest.raises(
                    PermissionDenied, match=r"oidc:eve@example\.org is viewer and may not manage-secrets"
                ):
                    await stub_of(link, "connect", "secret").CreateSecret(CreateSecretRequest(name="s"))
            for bad in (
                issuer.token("first", groups="admins", email="e", aud="other"),
                issuer.token("first", groups="admins", email="e", seconds=-60),
                viewer[:-6] + "AAAAAA",
            ):
                with pytest.raises(Unauthenticated):
                    await nodes(bad)

            issuer.add_key("second", "EdDSA")
            rotated = issuer.token("second", groups="admins", email="ada@example.org")

            async def is_good() -> bool:
                try:
                    await nodes(rotated)
                except Unauthenticated as error:
                    return error.reason != "UNKNOWN_KEY"
                return True

            await eventually(is_good)
            await nodes(rotated)


async def test_a_revoked_key_ends_a_stream_and_so_does_the_end_of_a_token(tmp_path: Path) -> None:
    issuer, file, jwks = Issuer("https://login.example"), tmp_path / "access.toml", tmp_path / "jwks.json"
    for key in ("revoked", "kept"):
        issuer.add_key(key)
    jwks.write_text(json.dumps(issuer.jwks()))
    file.write_text(
        f"[[issuer]]\nurl = '{issuer.url}'\naudience = '{AUDIENCE}'\njwks_file = '{jwks}'\nleeway_seconds = 0\n{RULES}"
    )
    async with running_system(tmp_path, {}, {"access-file": str(file)}) as system:

        async def watch(token: str) -> grpc.StatusCode:
            """The end of a watch."""
            async with channel(system.gateway.address, token=token) as link:
                with pytest.raises(grpc.aio.AioRpcError) as ended:
                    async for _ in stub_of(link, "event", "watch").Watch(WatchRequest()):
                        pass
                return ended.value.code()

        short, revoked, kept = (
            asyncio.ensure_future(watch(issuer.token(key, groups="eyes", seconds=seconds)))
            for key, seconds in (("kept", 4), ("revoked", 600), ("kept", 600))
        )
        try:
            async with asyncio.timeout(300):
                assert await short is grpc.StatusCode.UNAUTHENTICATED
            assert not revoked.done()
            del issuer.keys["revoked"]
            jwks.write_text(json.dumps(issuer.jwks()))
            async with asyncio.timeout(10):
                assert await revoked is grpc.StatusCode.UNAUTHENTICATED
            assert not kept.done()
        finally:
            kept.cancel()
            await asyncio.gather(kept, return_exceptions=True)
