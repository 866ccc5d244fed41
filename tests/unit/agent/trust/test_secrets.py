"""The files of secrets beside workers: written, emptied, and adopted by a restarted agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keelman.agent.trust.secrets import NONE, SECRETS, SecretFiles
from keelman.api.node.v1.session_service_pb2 import NodeSecret, NodeSecrets, WorkerSecrets
from keelman.runtime.home import Home


def told(values: dict[str, dict[str, str]], **workers: list[str]) -> NodeSecrets:
    return NodeSecrets(
        secrets=[NodeSecret(name=name, values=some) for name, some in values.items()],
        workers=[WorkerSecrets(workload=f"worker/{name}/0", names=names) for name, names in workers.items()],
    )


def on_disk(home: Home, name: str) -> Any:
    return json.loads((home.workload(f"worker/{name}/0") / SECRETS).read_text())


def test_a_worker_gets_what_it_may_read_and_loses_what_it_may_not(tmp_path: Path) -> None:
    home, values = Home(tmp_path), {"db": {"pw": "one"}, "other": {"k": "v"}}
    files = SecretFiles(home)
    assert files.files_of("worker/a/0") == {SECRETS: NONE}, "no answer came yet"
    files.take(told(values, a=["d*"], b=["db", "other", "none"]))
    for name in "ab":
        (folder := home.workload(f"worker/{name}/0")).mkdir(parents=True)
        for file, text in files.files_of(f"worker/{name}/0").items():
            (folder / file).write_text(text)
    assert on_disk(home, "a") == {"db": {"pw": "one"}}
    assert on_disk(home, "b") == values
    before = (home.workload("worker/b/0") / SECRETS).stat()

    files.take(told({"db": {"pw": "two"}, "other": {"k": "v"}}, a=["db"], b=["db", "other"]))
    assert (on_disk(home, "a"), on_disk(home, "b")["db"]) == ({"db": {"pw": "two"}}, {"pw": "two"})
    file = home.workload("worker/b/0") / SECRETS
    assert file.stat().st_ino != before.st_ino, "a reader sees the old file or the new"
    assert file.stat().st_mode & 0o777 == 0o600

    files.take(told({"other": {"k": "v"}}, b=["other"]))
    assert (on_disk(home, "a"), on_disk(home, "b")) == ({}, {"other": {"k": "v"}})
    untouched = file.stat().st_ino
    files.take(told({"other": {"k": "v"}}, b=["other"]))
    assert file.stat().st_ino == untouched


def test_an_agent_that_was_started_again_leaves_the_files_as_they_are(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (folder := home.workload("worker/a/0")).mkdir(parents=True)
    (folder / SECRETS).write_text('{"db": {}}')
    assert SecretFiles(home).files_of("worker/a/0") == {}
    assert SecretFiles(home).files_of("worker/b/0") == {SECRETS: NONE}
    SecretFiles(home).take(told({"db": {"pw": "new"}}, a=["*"]))
    assert on_disk(home, "a") == {"db": {"pw": "new"}}, "what changed while it was away"
