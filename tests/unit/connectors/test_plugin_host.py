"""The process of a plugin when its worker has ended."""

import os
import subprocess
import sys


def test_a_host_that_nobody_hears_ends_without_a_word() -> None:
    """Its standard error is the worker's log: a worker that ends while its plugins start is no fault."""
    hears, says = os.pipe()
    os.close(hears)
    command = [sys.executable, "-m", "keelman.connectors.plugins.host", "", str(1 << 30)]
    host = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=says, stderr=subprocess.PIPE, check=False)
    os.close(says)
    assert (host.returncode, host.stderr) == (1, b"")
