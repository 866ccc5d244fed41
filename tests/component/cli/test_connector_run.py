"""`keelman connector run`: a file's connector copies, an import error is printed once, a change restarts it."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from keelman.kafka.browsing import last_records
from support.eventually import eventually
from support.kafka.topics import create_topic

pytestmark = pytest.mark.component

SOURCE = """
from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type
from keelman.connect.plugin import Connector, Direction, Reader
from keelman.connect.records import Column, SourceBatch
from keelman.connect.schema import Schema

WORD = "first"

class Words(Connector):
    names = ("com.acme.WordsSourceConnector",)
    version = "1.0"
    direction = Direction.SOURCE
    runs_on = "anywhere"

    @classmethod
    def config_def(cls):
        return ConfigDef(ConfigKey("topic", Type.STRING, REQUIRED, Importance.HIGH, "Topic."))

    @classmethod
    def task_configs(cls, config, max_tasks):
        return [dict(config)]

    @classmethod
    def supports_exactly_once(cls, config):
        return True

    @classmethod
    def open_reader(cls, config, offset):
        return WordsReader(config["topic"], offset({"word": WORD}))

class WordsReader(Reader):
    def __init__(self, topic, last):
        self.topic, self.done = topic, last is not None

    def partitions(self):
        return [{"word": WORD}]

    def read(self):
        if self.done:
            return None
        self.done = True
        words = Column([WORD], Schema("string"))
        return SourceBatch(self.topic, words, offsets=[({"word": WORD}, {"n": 1})], short=True)

    def left(self):
        return 0
"""


async def test_a_connector_of_one_file_is_run_again_when_the_file_changes(bootstrap: str, tmp_path: Path) -> None:
    create_topic(bootstrap, "words")
    file, home = tmp_path / "words.py", tmp_path / "home"
    file.write_text(SOURCE)
    messages: list[str] = []
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "keelman.cli", "connector", "run", str(file), "--set", "topic=words"),
        *("--bootstrap-servers", bootstrap, "--home", str(home)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )

    async def listen() -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            messages.append(line.decode().rstrip())

    async def copied(*data: bytes) -> bool:
        return [
            last_record.value for last_record in await last_records({"bootstrap.servers": bootstrap}, "words", 10)
        ] == [*data]

    listening = asyncio.ensure_future(listen())
    try:
        await eventually(lambda: "task 0 RUNNING" in messages)
        await eventually(lambda: copied(b'"first"'))
        file.write_text(SOURCE.replace('WORD = "first"', 'WORD = "first\n'))
        fault = "keelman: words.py:7: SyntaxError: unterminated string literal (detected at line 7)"
        await eventually(lambda: fault in messages)
        file.write_text(SOURCE.replace("first", "second"))
        await eventually(lambda: copied(b'"first"', b'"second"'))
        assert messages.count(fault) == 1
        assert "words.py has changed: starting again" in messages
    finally:
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(300):
            await process.wait()
        await listening
    assert process.returncode == 0, messages
