"""Every child that is started while grpc is active starts its program."""

import os
import subprocess
import sys

from keelman.runtime import grpc_forks

PROGRAM = """
import asyncio, os, subprocess
from keelman.runtime import grpc_forks

grpc_forks.keep_out()
import grpc


async def main():
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    call = grpc.aio.insecure_channel(f"127.0.0.1:{port}").unary_unary("/none/none")

    async def chat():
        while True:
            try:
                await call(b"")
            except grpc.aio.AioRpcError:
                pass

    def children():
        # What is called between fork and exec makes it a true fork, as another user does.
        return [subprocess.run(["true"], preexec_fn=os.getpid).returncode for _ in range(60)]

    chats = [asyncio.ensure_future(chat()) for _ in range(4)]
    codes = await asyncio.gather(*(asyncio.to_thread(children) for _ in range(3)))
    print({code for some in codes for code in some}, flush=True)
    os._exit(0)


asyncio.run(main())
"""


def test_children_of_a_process_with_channels_begin_their_programs() -> None:
    without = {name: text for name, text in os.environ.items() if name != grpc_forks.SUPPORT}
    command = [sys.executable, "-c", PROGRAM]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=without)
    assert process.stdout == "{0}\n"
