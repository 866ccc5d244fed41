"""Processes that Spark and workers start write their stacks on SIGUSR1 too, and keep running."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

SLOT = (
    "import sys\nfrom keelman.connectors.slot_parts import LOOP, USE_PLUGIN\n"
    "from keelman.engine.slot.host import SlotOrder, host_slot\n"
    "host_slot(SlotOrder('s', 't', sys.argv[1], 60.0, LOOP, USE_PLUGIN), ())"
)


def stacks_of(process: subprocess.Popen[bytes], stands: bytes) -> None:
    """Sends the signal, and reads until the outermost frame."""
    assert process.stderr is not None
    process.send_signal(signal.SIGUSR1)
    for line in process.stderr:
        if stands in line:
            return
    raise AssertionError(f"the process has ended, with {process.wait(60)}")


def test_a_slot_writes_its_stacks() -> None:
    with socket.create_server(("127.0.0.1", 0)) as home:
        home.settimeout(120)
        command = [sys.executable, "-c", SLOT, f"127.0.0.1:{home.getsockname()[1]}"]
        slot = subprocess.Popen(command, stderr=subprocess.PIPE)
        try:
            with home.accept()[0]:
                stacks_of(slot, b"in host_slot")
        finally:
            slot.kill()
            slot.communicate()


def test_a_plugin_host_writes_its_stacks_and_goes_on() -> None:
    command = [sys.executable, "-m", "keelman.connectors.plugins.host", "", "0"]
    host = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert host.stdout is not None
        assert host.stdout.readline() == b"\n"
        stacks_of(host, b"plugins/host.py")
        answer, _ = host.communicate(b'{"id":1,"method":"describe","class":"FileStreamSource"}\n', timeout=120)
        assert b'"result"' in answer
    finally:
        host.kill()
