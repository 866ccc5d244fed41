"""Log lines by connector: kept in the process, and found in a log file, in both forms that a log may have."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
import structlog

from keelman.agent.workloads.logs import read_log_of
from keelman.runtime.logs import logging as ours
from keelman.runtime.logs.filter import ConnectorLines
from keelman.runtime.logs.recent_lines import EACH, RECENT, RecentLines


@pytest.fixture
def logging_kept() -> Iterator[None]:
    """Restores the settings that `configure` changes in this process."""
    root = logging.getLogger()
    before, handlers = structlog.get_config(), list(root.handlers)
    yield
    root.handlers[:] = handlers
    structlog.configure(**before)
    structlog.contextvars.clear_contextvars()
    RECENT.keep(0)


NAMES = ["plain", "a b", 'with "quotes"', "ünï", "plain2"]


@pytest.mark.parametrize("json", [False, True])
@pytest.mark.usefixtures("logging_kept")
async def test_lines_are_found_in_what_a_process_writes(
    capsys: pytest.CaptureFixture[str], json: bool, tmp_path: Path
) -> None:
    ours.configure("worker", json=json)
    log = ours.get_logger()
    for name in NAMES:
        log.info("said", connector=name, task=0, more="connector=plain3")
        log.warning("more", connector=name)
    log.info("nothing to do with one")
    try:
        raise ValueError("as told")
    except ValueError:
        log.exception("went_wrong", connector="plain")
    log.info("again nothing")
    written = capsys.readouterr().err
    file = tmp_path / "log"
    file.write_text(written)
    for name in NAMES:
        lines = ConnectorLines(name).kept(written.encode().splitlines(keepends=True))
        assert lines.count(b"said") == lines.count(b"more ") + lines.count(b'"event": "more"') == 1, name
        assert (b"as told" in lines) == (b"went_wrong" in lines) == (name == "plain")
        assert b"nothing" not in lines
        async for _ in read_log_of(ConnectorLines(name), file, tail_lines=1000, follow=False):
            pass
        pieces = [p async for p in read_log_of(ConnectorLines(name), file, tail_lines=1000, follow=False)]
        assert b"".join(pieces) == lines
        pieces = [p async for p in read_log_of(ConnectorLines(name), file, tail_lines=1, follow=False)]
        assert b"".join(pieces) == lines.splitlines(keepends=True)[-1]


@pytest.mark.parametrize("json", [False, True])
@pytest.mark.usefixtures("logging_kept")
def test_connectors_of_two_worker_clusters_are_told_apart(capsys: pytest.CaptureFixture[str], json: bool) -> None:
    ours.configure("slot", json=json)
    log = ours.get_logger()
    for cluster in ("a", "a b", "ab"):
        log.info(f"of {cluster}", worker_cluster=cluster, connector="x", task=0)
        log.info("of another", worker_cluster=cluster, connector="y")
    log.info("of nobody", connector="x")
    written = capsys.readouterr().err.encode().splitlines(keepends=True)
    for cluster in ("a", "a b", "ab"):
        lines = ConnectorLines("x", cluster).kept(written).splitlines()
        assert len(lines) == 2, lines
        assert f"of {cluster}".encode() in lines[0]
        assert b"of nobody" in lines[1], "a worker's own log need not name its cluster"
    assert len(ConnectorLines("x").kept(written).splitlines()) == 4


async def test_a_log_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "log"
    line = b'{"event": "%s", "connector": "%s"}\n'
    file.write_bytes(line % (b"one", b"x") + line % (b"other", b"y") + line % (b"two", b"x"))
    lines = read_log_of(ConnectorLines("x"), file, tail_lines=1, follow=True)
    async with asyncio.timeout(30):
        assert await anext(lines) == line % (b"two", b"x")
        with file.open("ab") as log:
            log.write(line % (b"other", b"y") + line % (b"three", b"x"))
        assert await anext(lines) == line % (b"three", b"x")
    await lines.aclose()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("logging_kept")
def test_a_threads_lines_carry_what_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger().handlers.clear()  # the test runner's own
    ours.configure("slot", json=True, slot="s1")
    RECENT.keep(100)

    def copies() -> None:
        ours.bind(connector="mine", task=3)
        ours.get_logger().info("copied")
        logging.getLogger("some.library").warning("and a library spoke")

    thread = threading.Thread(target=copy_context().run, args=(copies,))
    thread.start()
    thread.join()
    ours.get_logger().info("elsewhere")
    entries = RECENT.of("mine")
    assert [entry["event"] for entry in entries] == ["copied", "and a library spoke"]
    assert all((entry["task"], entry["slot"], entry["service"]) == (3, "s1", "slot") for entry in entries)
    assert '"connector": "mine"' not in capsys.readouterr().err.splitlines()[-1]


def test_what_is_kept_is_bounded() -> None:
    recent_lines = RecentLines()
    recent_lines.note(None, "info", {"event": "before", "connector": "a"})
    assert recent_lines.of("a") == []
    recent_lines.keep(10)
    for number in range(4):
        for name in ("quiet", "loud"):
            recent_lines.note(None, "info", {"event": str(number), "connector": name, "_record": object(), "odd": {1}})
    assert [entry["event"] for entry in recent_lines.of("quiet")] == ["0", "1", "2", "3"]
    assert recent_lines.of("quiet", 1)[0] == {"event": "3", "connector": "quiet", "odd": "{1}"}
    for number in range(8):
        recent_lines.note(None, "info", {"event": str(number), "connector": "loud"})
    assert recent_lines.of("quiet") == []
    assert len(recent_lines.of("loud")) <= 10
    for name in ("first", "second", "second", "second", "first", "third", "third", "third"):
        recent_lines.note(None, "info", {"event": "said", "connector": name})
    for _ in range(4):
        recent_lines.note(None, "info", {"event": "said", "connector": "third"})
    assert [len(recent_lines.of(name)) for name in ("first", "second")] == [2, 0]
    recent_lines.keep(10_000)
    for number in range(EACH + 50):
        recent_lines.note(None, "info", {"event": str(number), "connector": "loud"})
    assert len(recent_lines.of("loud")) == EACH
    assert recent_lines.of("loud", 0) == []
    long: Any = recent_lines.note(None, "info", {"event": "x" * 50_000, "connector": "long"})
    assert len(long["event"]) == 50_000
    assert len(recent_lines.of("long")[0]["event"]) < 30_000
