"""Waits for plugin imports."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from keelman.api.connect.v1.plugin_import_pb2 import PluginImportState
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.model.errors import DeadlineExceeded, FailedPrecondition

LOOK_SECONDS = 0.2


async def fetch(gateway: Gateway, name: str, seconds: float) -> Any:
    """Waits until a plugin import has its file; returns the import. Raises FailedPrecondition if the import fails, and
    DeadlineExceeded."""
    end = time.monotonic() + seconds
    while True:
        plugin_import = await gateway.get(kinds.PLUGIN_IMPORTS, name)
        if plugin_import.state == PluginImportState.PLUGIN_IMPORT_STATE_FAILED:
            raise FailedPrecondition(
                f"plugin import {name}: {plugin_import.code}: {plugin_import.message}", reason="IMPORT_FAILED"
            )
        if plugin_import.state == PluginImportState.PLUGIN_IMPORT_STATE_ACTIVE:
            return plugin_import
        if time.monotonic() > end:
            raise DeadlineExceeded(
                f"plugin import {name} is still being fetched after {seconds:g} s: {plugin_import.message}"
            )
        await asyncio.sleep(LOOK_SECONDS)
