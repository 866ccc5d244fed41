"""Former tasks are fenced in the end, whatever fails meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from keelman.model.errors import Unauthenticated
from keelman.runtime.supervise import Siblings
from keelman.worker.config.typed import checked
from keelman.worker.group import fencing as module
from keelman.worker.group.fencing import Fencing
from keelman.worker.standalone import StandaloneStore
from support.eventually import eventually
from support.worker.store import store_callbacks
from support.worker_properties import alone

PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"
KEY = "producer.override.ssl.key.password"


async def test_each_try_has_the_secrets_of_its_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, tried, done = tmp_path / "s.properties", [], []
    secret.write_text("k=old-password\n")

    async def fence_all(client: Mapping[str, str], ids: Sequence[str], *, client_id: str, seconds: float) -> None:
        tried.append(client["ssl.key.password"])
        if len(tried) == 1:
            secret.write_text("k=new-password\n")
            raise Unauthenticated("refused")

    monkeypatch.setattr(module, "fence_all", fence_all)
    worker = {
        **alone(tmp_path / "offsets"),
        "config.providers": "file",
        "config.providers.file.class": PROVIDER,
    }
    store = StandaloneStore(checked(worker, standalone=True), worker_id="w:1", callbacks=store_callbacks())
    fencing = Fencing(store, done.append)
    async with Siblings() as siblings:
        fencing.begin(siblings)
        assert not fencing.done("c", 1, {KEY: f"${{file:{secret}:k}}"}, [0, 1])
        await eventually(lambda: done)
    assert tried == ["old-password", "new-password"]
