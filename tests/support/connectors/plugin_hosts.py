"""Hosts of a small plugin, as a worker runs them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from keelman.connectors.plugins.client import PluginHost
from keelman.connectors.plugins.plugin_path import scan
from support.plugins.plugin_wheel import wheel


@asynccontextmanager
async def weather_host(folder: Path, more: Mapping[str, str] | None = None) -> AsyncIterator[PluginHost]:
    """The plugin's host; `more` are further files of its wheel. None of its processes is left behind."""
    wheel(folder / "plugins", more=more)
    (plugin,) = scan(str(folder / "plugins")).plugins
    async with PluginHost(plugin, answer_seconds=60) as plugin_host:
        yield plugin_host
        pid = plugin_host.pid
    if pid is not None:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
