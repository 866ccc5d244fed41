"""Files that others touch while sinks and sources are killed, and beside Apache Kafka Connect, with a real broker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from component.engine.test_sinks import file_sink, produce
from support.connectors import touched
from support.connectors.follower import append
from support.connectors.touched import Touch
from support.copying.harness import Run, copied_to_the_end, dies_at, hosted, ticket
from support.eventually import eventually
from support.kafka.topics import create_topic, messages
from support.servers.connect_worker import ConnectProcess
from support.waiting import until

pytestmark = pytest.mark.component

CONNECT = "org.apache.kafka.connect.file.FileStream{}Connector"
QUICK = {"offset.flush.interval.ms": "500", "offset.storage.topic": "none"}


def lines_of(path: Path) -> list[bytes]:
    """All lines of a file and of its former files, except cut ones."""
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    return [text for file in files for text in file.read_bytes().splitlines()]


@pytest.mark.parametrize(
    "touch", [touched.append, touched.rename, touched.copytruncate], ids=lambda value: value.__name__
)
def test_each_record_is_there_once_though_the_sink_is_killed_and_its_file_touched(
    bootstrap: str, name: str, tmp_path: Path, touch: Touch
) -> None:
    produce(bootstrap, name, range(60_000))
    taken, log = tmp_path / "taken", tmp_path / "log"
    config = file_sink(name, taken, **{"keelman.commit.interval.ms": "20"})
    for seen in range(3):
        size = taken.stat().st_size if taken.exists() else 0
        with hosted(bootstrap, config, log) as process:
            until(lambda size=size: taken.exists() and taken.stat().st_size not in (0, size), "the sink writes")
            touch(taken)
            process.kill()
            process.wait()
        if seen == 1 and taken.exists():
            touch(taken)
    dies_at(bootstrap, config, log, ("data written", 1))
    copied_to_the_end(bootstrap, config, log)
    numbers = [int(text) for text in lines_of(taken) if text != touched.STRANGE.strip()]
    assert sorted(numbers) == list(range(60_000))
    if touch is touched.append:
        assert len(lines_of(taken)) == 60_004


@pytest.mark.slow
async def test_the_lines_of_kafka_connects_own_sink_stay_when_it_gives_the_sink_back(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    taken, log = tmp_path / "taken", tmp_path / "log"
    config = file_sink(name, taken)
    produce(bootstrap, name, range(1000))
    copied_to_the_end(bootstrap, config, log)
    produce(bootstrap, name, range(1000, 2000))
    dies_at(bootstrap, config, log, ("data written", 1))
    torn = len(lines_of(taken)) - 1000
    assert torn
    file = tmp_path / "sink.properties"
    fields = {**config, "connector.class": CONNECT.format("Sink"), "consumer.override.auto.offset.reset": "earliest"}
    file.write_text("".join(f"{key}={value}\n" for key, value in fields.items()))
    worker = ConnectProcess(tmp_path / "connect", bootstrap, "alone", QUICK, standalone=(file,))
    try:
        await worker.start()
        produce(bootstrap, name, range(2000, 3000))
        await eventually(lambda: b"%040d" % 2999 in taken.read_bytes(), what="Connect copies")
    finally:
        await worker.end()
    before = taken.read_bytes()
    produce(bootstrap, name, range(3000, 4000))
    copied_to_the_end(bootstrap, config, log)
    assert taken.read_bytes().startswith(before), "lines of Connect's were cut"
    assert sorted(map(int, lines_of(taken))) == sorted([*range(4000), *range(1000, 1000 + torn)])


def late_writes(path: Path) -> None:
    touched.rotate(path)
    append(touched.beside(path, 1), b"late\n")


@pytest.mark.slow
async def test_a_source_copies_no_less_than_kafka_connects_own(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    touches: dict[str, Touch] = {
        "late": late_writes,
        "rename": touched.rotate,
        "twice": touched.rotate_twice,
        "truncate": touched.truncate,
        "copy": touched.copytruncate,
        "replace": touched.replace,
    }
    files, written = [], dict[str, set[bytes]]()
    for key in touches:
        create_topic(bootstrap, f"{name}-{key}")
        create_topic(bootstrap, f"{name}-{key}-peer")
        (tmp_path / key).mkdir()
        append(tmp_path / key / "in", b"".join(b"first %d\n" % number for number in range(100)))
        file = tmp_path / f"{key}.properties"
        config = {"name": key, "connector.class": CONNECT.format("Source"), "file": str(tmp_path / key / "in")}
        file.write_text("".join(f"{k}={v}\n" for k, v in {**config, "topic": f"{name}-{key}-peer"}.items()))
        files.append(file)
    worker = ConnectProcess(tmp_path / "connect", bootstrap, "alone", QUICK, standalone=tuple(files))

    def values(topic: str) -> list[bytes]:
        return [message.value() or b"" for message in messages(bootstrap, topic)]

    try:
        await worker.start()
        for key, touch in touches.items():
            peer = f"{name}-{key}-peer"
            await eventually(lambda peer=peer: len(values(peer)) == 100, what="Connect copies")
            ours = {"name": f"{name}-{key}", "connector.class": "FileStreamSource", "file": str(tmp_path / key / "in")}
            runs(ticket(bootstrap, {**ours, "topic": f"{name}-{key}"})).until_records(100)
            touch(tmp_path / key / "in")
            append(tmp_path / key / "in", b"last\n")
            written[key] = set(lines_of(tmp_path / key / "in"))
        await eventually(lambda: b"late" in values(f"{name}-late-peer"), what="Connect has the late line")
        for key in touches:
            whole = partial(lambda key: written[key] <= set(values(f"{name}-{key}")), key)
            await eventually(whole, what=f"all is copied after {key}")
    finally:
        await worker.end()
    for key in touches:
        actual_values = values(f"{name}-{key}")
        assert set(values(f"{name}-{key}-peer")) <= set(actual_values)
        assert len(actual_values) == len(set(actual_values)) + (2 if key == "replace" else 0), (
            "only equal lines come more than once"
        )
