"""A slot sets the host names of its order before it does anything, or ends with the reason."""

from __future__ import annotations

import subprocess
import sys

import pytest

from keelman.connectors.slot_parts import LOOP, USE_PLUGIN
from keelman.engine.slot.host import SlotOrder, host_slot
from keelman.model.errors import FailedPrecondition
from keelman.runtime.processes import private_hosts

SLOT = """
import socket, sys
from keelman.connectors.slot_parts import LOOP, USE_PLUGIN
from keelman.engine.slot.host import take_routes
from keelman.model.errors import FailedPrecondition
try:
    take_routes({"db.routes.example": "10.9.8.7"})
except FailedPrecondition as error:
    sys.exit(f"cannot: {error.message}")
print(socket.getaddrinfo("db.routes.example", 1)[0][4][0])
"""


def test_a_process_of_its_own_resolves_them() -> None:
    ran = subprocess.run([sys.executable, "-c", SLOT], capture_output=True, text=True, timeout=60, check=False)
    if "cannot: " in ran.stderr:
        pytest.skip(ran.stderr)
    assert ran.stdout == "10.9.8.7\n", ran.stderr


def test_a_slot_that_cannot_have_them_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = []

    def enter(routes: object) -> None:
        requests.append(routes)
        raise private_hosts.NotPossible("no mount namespace")

    monkeypatch.setattr(private_hosts, "enter", enter)
    order = SlotOrder("slot-1", "token", "127.0.0.1:1", 60.0, LOOP, USE_PLUGIN, routes={"db": "10.0.0.7"})
    with pytest.raises(FailedPrecondition, match=r"cannot have its routes .*: no mount namespace") as refused:
        host_slot(order, ())
    assert (refused.value.reason, requests) == ("ROUTES_NOT_POSSIBLE", [{"db": "10.0.0.7"}])
