"""The archive of Kafka Connect's classes is created once, and the machine of a slot loads its classes from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from keelman.connectors.java import jvm
from keelman.runtime.home import cache_folder
from keelman.runtime.java.class_archive import archive_file
from keelman.runtime.java.installation import find

pytestmark = pytest.mark.component
STARTED = """
import os, sys
from keelman.connectors.java import jvm
jvm.start(jvm.JvmOptions(more=[f"-Xlog:class+load:file={sys.argv[1]}"]))
jvm.java_class("org.apache.kafka.connect.json.JsonConverter")
sys.stdout.flush()
os._exit(0)
"""


def loaded(environment: dict[str, str], log: Path) -> str:
    """The line about the converter's class in the log of a fresh machine."""
    done = subprocess.run(
        [sys.executable, "-c", STARTED, str(log)], env=environment, check=True, capture_output=True, text=True
    )
    assert not done.stdout, "Java writes no line about the archive to the plugins' output"
    return next(line for line in log.read_text().splitlines() if "connect.json.JsonConverter " in line)


async def test_classes_come_from_an_archive_that_is_made_once(tmp_path: Path) -> None:
    jars = await jvm.fetch_runtime_jars()
    cache = tmp_path / "cache"
    (cache / "jars").mkdir(parents=True)
    (cache / "jars" / jars[0].parent.name).symlink_to(jars[0].parent)
    assert jars[0].parent.parent == cache_folder() / "jars"
    environment = {**os.environ, "KEELMAN_CACHE": str(cache)}
    assert "shared objects file" not in loaded(environment, tmp_path / "before.log")
    command = [sys.executable, "-m", "keelman.connectors.java.archive"]
    printed = [
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout for _ in "12"
    ]
    archive = cache / "classes" / archive_file(jars, find()).name
    assert [Path(line.strip()) for line in printed] == [archive, archive]
    written_at = archive.stat().st_mtime_ns
    assert "shared objects file" in loaded(environment, tmp_path / "after.log")
    assert archive.stat().st_mtime_ns == written_at
    archive.chmod(0o600)
    archive.write_bytes(b"")
    assert "shared objects file" not in loaded(environment, tmp_path / "failed.log"), "an empty one is none"
