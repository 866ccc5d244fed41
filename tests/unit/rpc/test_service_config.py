"""The service config of docs/grpc.md: a client with it retries the calls that may be repeated."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from keelman.runtime.processes.ports import free_ports
from support.places import ROOT

CALL = "/keelman.api.node.v1.NodeService/ListNodes"


async def test_a_call_that_nobody_answered_is_made_again() -> None:
    text = (ROOT / "docs" / "grpc.md").read_text(encoding="utf-8")
    (config,) = (part.partition("```")[0] for part in text.split("```json\n")[1:] if "methodConfig" in part)
    (port,), seen = free_ports(1), []

    async def answer(request: bytes, context: Any) -> bytes:
        seen.append(request)
        if len(seen) < 3:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
        if len(seen) > 3:
            await context.abort(grpc.StatusCode.ABORTED, "read it again")
        return b"done"

    service, _, method = CALL[1:].partition("/")
    handler = grpc.method_handlers_generic_handler(service, {method: grpc.unary_unary_rpc_method_handler(answer)})
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    options = [("grpc.service_config", config), ("grpc.enable_http_proxy", 0)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as link:
        call: Any = link.unary_unary(CALL)
        assert await call(b"r-1", timeout=30) == b"done"
        assert seen == [b"r-1"] * 3
        with pytest.raises(grpc.aio.AioRpcError, match="read it again"):
            await call(b"r-2", timeout=30)
        assert seen[3:] == [b"r-2"]
    await server.stop(None)
