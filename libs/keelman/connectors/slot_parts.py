"""Gives a slot the functions above the engine: one finds a connector's class, one prepares the slot for a plugin.

A SlotOrder names both, and the slot loads them by these names in its own process.
"""

from __future__ import annotations

from collections.abc import Callable

from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.connectors.plugins import plugin_path
from keelman.connectors.registry import find_connector
from keelman.engine.run import CopyRunLoop


def copy_run_loop(
    ticket: StartTicket,
    on_update: Callable[[RunUpdate], None],
    *,
    still_allowed: Callable[[], bool],
    rest: Callable[[], float],
) -> CopyRunLoop:
    """A loop that finds its connector among those that ship and those of the slot's plugin."""
    return CopyRunLoop(ticket, on_update, find=find_connector, still_allowed=still_allowed, rest=rest)


LOOP = f"{__name__}:{copy_run_loop.__name__}"
USE_PLUGIN = f"{plugin_path.__name__}:{plugin_path.use.__name__}"
