"""Our files in a new broker's folders equal those of Kafka's storage tool, and Kafka accepts them."""

import struct
from pathlib import Path

import pytest

from keelman.broker.formatting import UNSTABLE, format_storage, kept_bootstrap
from keelman.broker.jvm import BrokerFiles, run_storage_tool
from keelman.broker.prepare import prepare
from keelman.broker.properties import server_properties, written
from keelman.broker.settings import Settings
from keelman.runtime.java.installation import Java
from support.brokers.broker import BrokerProcess

pytestmark = pytest.mark.component

CLUSTER = "k3lmAnTestClusterOf1-Q"
NO_JAVA = Java(Path("/nowhere/java"), "0")
HEAD = struct.Struct(">qi")
"""The start of a batch of records: its offset and its length after this head."""
CHECKSUM, TIMES = slice(17, 21), slice(27, 43)


def made(home: Path, **fields: object) -> tuple[Settings, BrokerFiles]:
    """A broker's home before it is formatted, with two folders of partitions."""
    folders = tuple(str(home / name) for name in ("a", "b"))
    settings = Settings(home=home, data_folders=folders, node_id=7, voters=("7@127.0.0.1:9093",), **fields)
    files = BrokerFiles(home)
    files.create()
    files.properties.write_text(written(server_properties(settings)), encoding="latin-1")
    return settings, files


def timeless(snapshot: bytes) -> list[bytes]:
    """A snapshot's batches without their times, and without the checksums over these."""
    batches = []
    while snapshot:
        end = HEAD.size + HEAD.unpack_from(snapshot)[1]
        batch, snapshot = bytearray(snapshot[:end]), snapshot[end:]
        for changing in (CHECKSUM, TIMES):
            batch[changing] = bytes(changing.stop - changing.start)
        batches.append(bytes(batch))
    return batches


def owner_lines(folder: Path) -> list[str]:
    """The lines in their order; the tool adds the time as a comment, and ids are random."""
    lines = (folder / "meta.properties").read_text().splitlines()
    return [line.split("=")[0] if line.startswith("directory.id=") else line for line in lines if line[0] != "#"]


async def test_the_folders_are_as_kafkas_tool_leaves_them(tmp_path: Path) -> None:
    prepared = await prepare()
    settings, files = made(tmp_path / "first")
    await format_storage(prepared.java, prepared.jars, settings, files, CLUSTER)
    assert kept_bootstrap(prepared.jars).is_file(), "made by the first caller"

    settings, files = made(tmp_path / "ours")
    await format_storage(NO_JAVA, prepared.jars, settings, files, CLUSTER)
    _, by_tool = made(tmp_path / "tool")
    await run_storage_tool(prepared.java, prepared.jars, by_tool, CLUSTER)

    for name in ("data", "a", "b"):
        ours, theirs = files.root / name, by_tool.root / name
        assert {path.name for path in ours.iterdir()} == {path.name for path in theirs.iterdir()}
        assert owner_lines(ours) == owner_lines(theirs)
        snapshot = (theirs / "bootstrap.checkpoint").read_bytes()
        assert len(timeless(snapshot)) == 3, "its head, its records and its foot"
        assert timeless((ours / "bootstrap.checkpoint").read_bytes()) == timeless(snapshot)


async def test_other_levels_of_features_are_the_tools_to_write(tmp_path: Path) -> None:
    prepared = await prepare()
    settings, files = made(tmp_path, properties={UNSTABLE: "true"})
    await format_storage(prepared.java, prepared.jars, settings, files, CLUSTER)
    levels = timeless((files.data / "bootstrap.checkpoint").read_bytes())
    assert levels != timeless(kept_bootstrap(prepared.jars).read_bytes())


async def test_a_broker_takes_the_folders_with_their_ids(tmp_path: Path) -> None:
    prepared = await prepare()
    settings, files = made(tmp_path / "home")
    await format_storage(prepared.java, prepared.jars, settings, files, CLUSTER)
    folders = [files.root / name for name in ("data", "a", "b")]
    before = [id_of(folder) for folder in folders]
    assert len(set(before)) == len(folders)
    flags = (f"--data-folders={','.join(settings.data_folders)}", "--node-id=7", f"--cluster-id={CLUSTER}")
    broker = BrokerProcess(files.root, flags=flags)
    await broker.start()
    try:
        assert [id_of(folder) for folder in folders] == before
        assert "broker_formatting" not in broker.output
    finally:
        await broker.end()
    source = f"from bootstrap source 'the binary bootstrap metadata file: {files.data}/bootstrap.checkpoint'"
    assert source in files.log.read_text()


def id_of(folder: Path) -> str:
    lines = (folder / "meta.properties").read_text().splitlines()
    return next(line for line in lines if line.startswith("directory.id="))
