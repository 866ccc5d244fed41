"""Files that are renamed, copied and truncated during and between copy runs, against a real broker.

Also numbered records in transactions of their own: each once, in order.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.copying.harness import OFFSET_TOPIC, Run, committed_offsets, ticket
from support.kafka.topics import create_topic, messages

pytestmark = pytest.mark.component

JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture
def run_of(bootstrap: str, name: str, runs: Callable[..., Run]) -> Callable[[dict[str, str]], Run]:
    """Starts a copy run of connector `name` to topic `name` and waits until it runs."""
    create_topic(bootstrap, name)

    def start(config: dict[str, str]) -> Run:
        run = runs(ticket(bootstrap, {**config, "name": name, "topic": name}))
        run.until_state("RUNNING", seconds=300)
        return run

    return start


def visible(bootstrap: str, topic: str) -> list[bytes]:
    """The committed values in a topic of one partition."""
    return [m.value() or b"" for m in messages(bootstrap, topic)]


def test_each_line_once_however_its_file_is_turned_over(
    bootstrap: str, name: str, run_of: Callable[[dict[str, str]], Run], tmp_path: Path
) -> None:
    path = tmp_path / "in.log"
    config = {"connector.class": "FileStreamSource", "file": str(path)}
    written = 0

    def write(count: int) -> None:
        nonlocal written
        with path.open("ab") as file:
            file.write(b"".join(b"line %d\n" % n for n in range(written, written + count)))
        written += count

    write(3000)
    run = run_of(config)
    run.until_records(3000)
    write(200)
    path.rename(tmp_path / "in.log.1")  # while it copies
    write(300)
    run.until_records(3500)
    run.drain()
    write(400)
    path.rename(tmp_path / "in.log.2")  # between two reads
    write(100)
    run = run_of(config)
    run.until_records(500)
    write(500)
    run.until_records(1000)
    run.drain()
    write(50)
    shutil.copy(path, tmp_path / "in.log.3")  # copied away and truncated, between two reads
    path.write_bytes(b"")
    write(70)
    run = run_of(config)
    run.until_records(120)
    run.drain()
    assert visible(bootstrap, name) == [b"line %d" % n for n in range(written)]
    ((key, value),) = committed_offsets(bootstrap, OFFSET_TOPIC, name)
    assert json.loads(key) == [name, {"filename": str(path)}]
    offset = json.loads(value)
    assert offset["position"] == path.stat().st_size
    assert offset["mark"].startswith(f"{path.stat().st_ino}:{offset['position']}:")


def test_transactions_as_the_connector_wants_them(
    bootstrap: str, name: str, run_of: Callable[[dict[str, str]], Run], tmp_path: Path
) -> None:
    told = tmp_path / "told"
    config = {
        "connector.class": "VerifiableSource",
        "key.converter": JSON,
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "key.converter.schemas.enable": "false",
        "output.file": str(told),
        "transaction.boundary": "connector",
        "transaction.records": "10",
        "transaction.abort.every": "3",
    }
    for most in (20, 60):
        run = run_of({**config, "max.records": str(most)})
        last = b'"seqno":%d,"committed":true' % (most - 11 if most == 60 else most - 1)
        run.until(lambda _, last=last: last in told.read_bytes())
        run.drain()
    remaining = [n for n in range(60) if n // 10 not in (2, 5)]
    assert visible(bootstrap, name) == [b"%d" % n for n in remaining]
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    assert [line["seqno"] for line in lines if line.get("committed")] == remaining
    offsets = committed_offsets(bootstrap, OFFSET_TOPIC, name)
    # As in Connect the offsets of an aborted transaction are committed: its records are not read again.
    assert offsets == [(f'["{name}",{{"id":0}}]'.encode(), b'{"seqno":59}')]
