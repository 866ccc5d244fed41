"""A standalone worker's parts: files of connectors, the file of offsets, and the Spark service beside a worker."""

import asyncio
import json
import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import structlog

from keelman.connect.java.maps import dump_map, load_map
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.work import Work
from keelman.worker.config.typed import checked
from keelman.worker.connector_files import read_connector, read_connectors
from keelman.worker.rest import bodies
from keelman.worker.spark_beside import SparkBeside
from keelman.worker.standalone import StandaloneStore
from keelman.worker.storage import config_records as records
from keelman.worker.storage.status_state import RUNNING, Status
from keelman.workers.properties.typed import WorkerProperties
from support.worker.store import store_callbacks
from support.worker_properties import alone

KEY, VALUE = b'["c",{"filename":"/in"}]', b'{"position":7}'


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("name = c\ntasks.max: 2\n", None),
        ('{"name": "c", "tasks.max": 2}', None),
        ('{"name": "c", "config": {"tasks.max": "2"}}', None),
        ('\n{"name": "c", "config": {"tasks.max": 2, "name": "c"}, "initial_state": "STOPPED"}', "STOPPED"),
    ],
)
def test_a_file_of_a_connector_is_known_by_its_content(tmp_path: Path, text: str, state: str | None) -> None:
    file = tmp_path / "c"
    file.write_text(text)
    connector = read_connector(file)
    assert (connector.name, connector.config, connector.initial_state) == ("c", {"name": "c", "tasks.max": "2"}, state)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks.max=2\n", "name is missing"),
        ('{"name": "c",', "it begins as JSON and is not JSON: Expecting property name"),
        ('{"name": "c", "config": {"name": "d"}}', "doesn't match the one specified in 'name' at the top level"),
        ('{"name": "c", "a": NaN}', "it begins as JSON and is not JSON: NaN is no JSON number"),
        ('{"name": "c", "config": {}, "state": "STOPPED"}', 'Unrecognized field "state"'),
        ('{"name": "c", "config": {}, "initial_state": "ended"}', "No enum constant"),
        ('{"name": "c", "a": ["b"]}', "Cannot deserialize value of type `java.lang.String` from Array value"),
    ],
)
def test_what_is_no_connector_is_told_with_its_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "c"
    file.write_text(text)
    with pytest.raises(InvalidArgument, match=str(file)) as caught:
        read_connector(file)
    assert message in caught.value.message


@pytest.mark.parametrize("text", ['{"name": " c ", %s}', '{"name": " c ", "config": {"name": "c", %s}}'])
def test_values_are_read_from_files_as_by_rest(tmp_path: Path, text: str) -> None:
    file, values = tmp_path / "c", '"x": 1.10, "yes": true, "no": null, "big": 1E400'
    file.write_text(text % values)
    by_rest = {"name": "c", **bodies.text_map(bodies.parsed(f"{{{values}}}".encode()))}
    assert (
        read_connector(file).config == by_rest == {"name": "c", "x": "1.10", "yes": "true", "no": None, "big": "1E400"}
    )


def test_one_name_stands_for_one_connector(tmp_path: Path) -> None:
    for file in ("a", "b"):
        (tmp_path / file).write_text("name=c\n")
    with pytest.raises(InvalidArgument, match=r"/a and .*/b: each defines connector 'c'"):
        read_connectors([str(tmp_path / "a"), str(tmp_path / "b")])
    with pytest.raises(InvalidArgument, match="No such file"):
        read_connectors([str(tmp_path / "none")])


def properties_of(file: Path) -> WorkerProperties:
    return checked(alone(file), standalone=True)


def store_of(file: Path) -> StandaloneStore:
    return StandaloneStore(properties_of(file), worker_id="w:1", callbacks=store_callbacks())


def opened(file: Path) -> AbstractAsyncContextManager[StandaloneStore]:
    return StandaloneStore.open(properties_of(file), worker_id="w:1", callbacks=store_callbacks())


async def test_offsets_outlive_the_worker_and_nothing_else_does(tmp_path: Path) -> None:
    file, foreign = tmp_path / "offsets", {b"foreign": b"x", b'["d",{"b":1,"a":2}]': b'{"n":1}'}
    file.write_bytes(dump_map({KEY: VALUE, **foreign}))
    file.chmod(0o640)
    store = store_of(file)
    assert store.offsets.of("c") == [(KEY, VALUE)]
    await store.config_topic.write([records.connector_record("c", {"name": "c"}), records.commit_record("c", 0)])
    assert store.config.connectors == {"c": {"name": "c"}}
    async with asyncio.TaskGroup() as group:
        running = group.create_task(store.run())
        store.status_topic.writer.put(Work("c"), Status(RUNNING, "w:1", 1))
        await store.status_topic.writer.flush(seconds=10)
        running.cancel()
    assert store.statuses.statuses[Work("c")].state == RUNNING
    # In the form of copy runs: fields sorted, the newest offset of each partition; a sink's offsets are numbers.
    store.committed("c", {'{"filename":"/in"}': '{"position":9}', '{"topic":"t","partition":0}': "5"})
    store.committed("d", {'{"a":2,"b":1}': "null"})
    store.file.write()
    assert load_map(file.read_bytes()) == {KEY: b'{"position":9}', b"foreign": b"x"}
    assert file.stat().st_mode & 0o777 == 0o640
    written = file.stat().st_ino
    store.file.write()
    assert file.stat().st_ino == written, "an unchanged file is not written again"
    await store.offset_topic.write([(KEY, b'{"position":1}')])
    assert load_map(file.read_bytes())[KEY] == b'{"position":1}', "what REST has altered is there at once"
    await store.offset_topic.write([(KEY, b'{"position":9}')])
    again = store_of(file)
    assert (again.offsets.of("c"), again.config.connectors) == ([(KEY, b'{"position":9}')], {})


async def test_an_offset_topic_of_a_connector_is_told_to_mean_nothing(tmp_path: Path) -> None:
    store = store_of(tmp_path / "offsets")
    with structlog.testing.capture_logs() as logged:
        for name, more in (("a", {"offsets.storage.topic": "mine"}), ("b", {}), ("a", {"offsets.storage.topic": "no"})):
            await store.config_topic.write([records.connector_record(name, {"name": name, **more})])
    start_line = {"connector": "a", "topic": "mine", "file": str(tmp_path / "offsets"), "log_level": "warning"}
    assert logged == [{"event": "offset_topic_ignored", **start_line}], "once, when it is created"


async def test_one_file_of_offsets_is_one_workers(tmp_path: Path) -> None:
    file, link = tmp_path / "offsets", tmp_path / "link"
    link.symlink_to(file)
    legal = f"a file that no other worker uses: the worker with process id {os.getpid()} uses it"
    async with opened(file):
        for same in (file, link):
            with pytest.raises(InvalidArgument, match=legal):
                async with opened(same):
                    pass
    async with opened(link):
        pass
    with pytest.raises(InvalidArgument, match="a file that can be written"):
        async with opened(tmp_path / "none" / "offsets"):
            pass


async def test_only_regular_files_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link, pipe, written = tmp_path / "link", tmp_path / "pipe", list[object]()
    monkeypatch.setattr("keelman.worker.storage.offset_file.write_file", lambda *args, **_: written.append(args))
    link.symlink_to(os.devnull)
    async with opened(link) as store:
        store.committed("c", {'{"filename":"/in"}': '{"position":1}'})
    assert not written, "root could put a file in its place"
    os.mkfifo(pipe)
    with pytest.raises(InvalidArgument, match=f"'{pipe}' is not legal: a regular file, or /dev/null"):
        async with opened(pipe):
            pass
    assert not written


async def test_a_place_that_cannot_be_written_is_told_at_once() -> None:
    with pytest.raises(InvalidArgument, match=r"offset\.storage\.file\.filename.*a file that can be written"):
        store_of(Path("/proc/none/offsets"))


@pytest.mark.parametrize(
    ("content", "message"), [(b"no map", "a file of Connect's offsets"), (None, "a readable file")]
)
async def test_what_is_no_file_of_offsets_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "offsets"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    with pytest.raises(InvalidArgument, match=message):
        store_of(file)
    assert content is None or file.read_bytes() == content, "it is left as it was"


async def test_a_full_disk_costs_no_offset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(tmp_path / "offsets")
    store.committed("c", {'{"filename":"/in"}': '{"position":1}'})
    with monkeypatch.context() as full:
        full.setattr("keelman.worker.storage.offset_file.write_file", _no_space)
        store.file.write()
    store.file.write()
    assert json.loads(load_map((tmp_path / "offsets").read_bytes())[KEY] or b"") == {"position": 1}


def _no_space(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(("log", "message"), [("/dev/full", "No space left on device"), ("/", "Is a directory")])
async def test_a_log_that_cannot_be_written_is_told_before_spark_starts(tmp_path: Path, log: str, message: str) -> None:
    folder = tmp_path / "worker"
    folder.mkdir()
    (folder / "spark.log").symlink_to(log)
    beside = SparkBeside(folder, tmp_path / "s.sock")
    with pytest.raises(
        InvalidArgument, match=rf"worker\.home: '{folder}' is not legal: a writable folder \({message}\)"
    ):
        async with beside.running(asyncio.Event()):
            pass


async def test_a_spark_service_that_cannot_run_ends_the_worker_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEELMAN_SPARK_MASTER", "nonsense")
    stop, beside = asyncio.Event(), SparkBeside(tmp_path / "worker", tmp_path / "s.sock")
    with pytest.raises(FailedPrecondition) as caught:
        async with asyncio.timeout(60), beside.running(stop):
            await stop.wait()
    assert "spark.master: 'nonsense' is not legal" in caught.value.message
    assert "--spark-address" in caught.value.message
