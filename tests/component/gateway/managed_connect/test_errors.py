"""Every error that the SDK's model declares, of every operation; and none that an operation does not declare."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import grpc.aio
import httpx
import pytest

from keelman.gateway.managed_connect.errors import STATUS
from support.gateway.managed_connect.bare import MODEL, Raw, Wire, gateway_process
from support.gateway.managed_connect.cases import legal, unknown_arn
from support.gateway.managed_connect.world import OTHER_SECRET

pytestmark = pytest.mark.component
OPERATIONS = list(MODEL.operation_names)
CODE = grpc.StatusCode
OF_CODE = {
    CODE.UNAUTHENTICATED: "UnauthorizedException", CODE.PERMISSION_DENIED: "ForbiddenException",
    CODE.RESOURCE_EXHAUSTED: "TooManyRequestsException", CODE.INTERNAL: "InternalServerErrorException",
    CODE.UNKNOWN: "InternalServerErrorException", CODE.DATA_LOSS: "InternalServerErrorException",
    CODE.UNAVAILABLE: "ServiceUnavailableException", CODE.DEADLINE_EXCEEDED: "ServiceUnavailableException",
    CODE.INVALID_ARGUMENT: "BadRequestException", CODE.NOT_FOUND: "NotFoundException",
    CODE.FAILED_PRECONDITION: "BadRequestException", CODE.ABORTED: "BadRequestException",
    CODE.ALREADY_EXISTS: "BadRequestException",
}  # fmt: skip
"""The errors for the state service's statuses; for the last two a ConflictException where that is declared."""
AS_CONFLICT = {CODE.ABORTED, CODE.ALREADY_EXISTS}


class Refusing(grpc.GenericRpcHandler):
    """A state service that answers every call with one status."""

    code = CODE.INTERNAL

    def service(self, handler_call_details: Any) -> Any:
        """The handler of any method."""

        async def refuse(request: bytes, context: Any) -> bytes:
            await context.abort(self.code, "as the test has it")
            raise AssertionError

        return grpc.unary_unary_rpc_method_handler(refuse)


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Refusing, str]]:
    """A state service of the test's own, and a real gateway before it."""
    folder, handler, server = tmp_path_factory.mktemp("errors"), Refusing(), grpc.aio.server()
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    gateway, endpoint = gateway_process(folder, "gateway", f"127.0.0.1:{port}")
    try:
        await gateway.start()
        yield handler, endpoint
    finally:
        gateway.stop()
        await server.stop(0)


@pytest.fixture(scope="module")
def raw(world: tuple[Refusing, str]) -> Iterator[Raw]:
    raw = Raw(world[1])
    yield raw
    raw.close()


def declared(operation: str) -> set[str]:
    """The errors of an operation."""
    return {shape.name for shape in MODEL.operation_model(operation).error_shapes}


def request(operation: str) -> Wire:
    """A legal request; its ARNs are of missing resources."""
    answered = legal(operation, {"customPluginArn": unknown_arn("custom-plugin")})
    return Wire.of(operation, answered)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_what_the_state_service_refuses(world: tuple[Refusing, str], raw: Raw, operation: str) -> None:
    produced: set[str] = set()
    for code, kind in OF_CODE.items():
        world[0].code = code
        conflicts = "ConflictException" in declared(operation) and code in AS_CONFLICT
        answer = await _sent(raw, request(operation))
        expected_kind = "ConflictException" if conflicts else kind
        assert (answer.kind, answer.status) == (expected_kind, STATUS[expected_kind]), (operation, code, answer)
        assert answer.message, answer
        produced.add(answer.kind)
    assert produced == declared(operation), "each is produced, and no other"


async def _sent(raw: Raw, wire: Wire) -> Any:
    """The answer to a request from a thread: the state service is in this loop."""
    return await asyncio.to_thread(raw.send, wire)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_who_does_not_sign_is_forbidden(world: tuple[Refusing, str], operation: str) -> None:
    wire = request(operation)
    async with httpx.AsyncClient(trust_env=False, timeout=300) as client:
        answer = await client.request(wire.method, world[1] + wire.path, json=wire.body)
    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (403, "ForbiddenException")
    assert answer.json() == {"message": "Missing Authentication Token"}
    forged = Raw(world[1], secret=OTHER_SECRET)
    forged_answer = await asyncio.to_thread(forged.send, wire)
    forged.close()
    assert (forged_answer.status, forged_answer.kind) == (403, "ForbiddenException")
