"""Calls to several servers, of which any may answer."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from keelman.model.errors import Unavailable
from keelman.rpc.channels import channel
from keelman.rpc.routing.any_of import AnyOf
from keelman.rpc.server import RpcService, serve
from keelman.runtime.processes.ports import free_ports
from support.eventually import eventually


@contextlib.asynccontextmanager
async def server(port: int, name: str) -> AsyncIterator[grpc.aio.Server]:
    """A server with one service, which identifies it."""
    grpc_server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, grpc_server)
    await servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
    grpc_server.add_insecure_port(f"127.0.0.1:{port}")
    await grpc_server.start()
    try:
        yield grpc_server
    finally:
        await grpc_server.stop(None)


async def answers(stub: health_pb2_grpc.HealthStub, name: str) -> bool:
    """Whether the server of this name answers the next call."""
    try:
        await stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=5)
    except (grpc.aio.AioRpcError, Unavailable):
        return False
    except Exception as error:
        if type(error).__name__ == "NotFound":
            return False
        raise
    return True


async def test_calls_stay_with_one_and_go_to_the_other_when_it_is_gone() -> None:
    first, second = free_ports(2)
    async with contextlib.AsyncExitStack() as gone, channel(f"127.0.0.1:{first}, 127.0.0.1:{second}") as both:
        assert isinstance(both, AnyOf)
        await gone.enter_async_context(server(first, "first"))
        stub = health_pb2_grpc.HealthStub(both)
        await eventually(lambda: answers(stub, "first"))
        async with server(second, "second"):
            assert await answers(stub, "first"), "it stays while that one can be reached"
            await gone.aclose()
            await eventually(lambda: answers(stub, "second"))
            async with server(first, "first"):
                assert await answers(stub, "second"), "it stays where it is"


async def test_one_that_serves_no_more_is_left_while_another_does() -> None:
    ports = free_ports(2)
    async with contextlib.AsyncExitStack() as stack:
        switches = []
        for port, name in zip(ports, ("first", "second"), strict=True):
            service = RpcService(name, lambda servicer, value: None, None)
            switches.append(await stack.enter_async_context(serve(service, port=port)))
        for switch in switches:
            await switch.ready()
        routed = await stack.enter_async_context(channel(",".join(f"127.0.0.1:{port}" for port in ports)))
        stub = health_pb2_grpc.HealthStub(routed)
        await eventually(lambda: answers(stub, "first"))
        await switches[0].unready()
        await eventually(lambda: answers(stub, "second"), what="calls go to the other server")
        await switches[0].ready()
        assert await answers(stub, "second"), "it stays where it is"
        await switches[0].unready()
        await switches[1].unready()
        assert await answers(stub, "second"), "no other one is better"


async def test_all_of_them_may_be_away_for_a_while() -> None:
    first, second = free_ports(2)
    async with channel(f"127.0.0.1:{first},127.0.0.1:{second}", peer="the state service") as both:
        stub = health_pb2_grpc.HealthStub(both)
        with pytest.raises(Unavailable, match="the state service"):
            await stub.Check(health_pb2.HealthCheckRequest(service="second"), timeout=5)
        async with server(second, "second"):
            await eventually(lambda: answers(stub, "second"))


async def test_a_server_that_hangs_is_left_while_another_answers() -> None:
    first, second = free_ports(2)
    async with contextlib.AsyncExitStack() as stack:
        process = stack.enter_context(subprocess.Popen([sys.executable, "-c", SERVER, str(first)]))
        stack.callback(process.kill)
        probed_channel = await stack.enter_async_context(channel(f"127.0.0.1:{first},127.0.0.1:{second}", probed=True))
        stub = health_pb2_grpc.HealthStub(probed_channel)
        await eventually(lambda: answers(stub, "first"))
        await stack.enter_async_context(server(second, "second"))
        process.send_signal(signal.SIGSTOP)
        await eventually(lambda: answers(stub, "second"), what="calls go to the other one")
        process.send_signal(signal.SIGCONT)
        assert await answers(stub, "second"), "it stays where it is"


SERVER = """
import asyncio, sys, grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

async def main():
    options = [("grpc.so_reuseport", 0), ("grpc.http2.min_ping_interval_without_data_ms", 5000)]
    server = grpc.aio.server(options=options)
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    await servicer.set("first", health_pb2.HealthCheckResponse.SERVING)
    server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
    await server.start()
    await server.wait_for_termination()

asyncio.run(main())
"""
