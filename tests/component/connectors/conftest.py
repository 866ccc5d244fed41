"""A worker whose copy runs copy nothing, for previews and replays."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.connectors.numbers_wheel import numbers_wheel
from support.worker.processes import WorkerProcess, link_side, workers
from support.worker.trials import WORD


@pytest.fixture(scope="module")
async def worker(
    request: pytest.FixtureRequest, bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[WorkerProcess]:
    """One worker, whose copy runs copy nothing: these tests need no copying."""
    folder = tmp_path_factory.mktemp("worker")
    secret = folder / "secret.properties"
    secret.write_text(f"word={WORD}\n")
    plugins = folder / "plugins"
    plugins.mkdir()
    numbers_wheel(plugins)
    extra = {
        "plugin.path": str(plugins),
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "test.secret": str(secret),
    }
    async with link_side() as (_, address):
        process = WorkerProcess(folder, bootstrap, request.node.path.stem, address, extra)
        async with workers(process):
            yield process
