"""Pinned jars: complete or absent, checksums verified, fetched once for any number of callers."""

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from keelman.model.errors import FailedPrecondition, InvalidArgument, Unavailable
from keelman.runtime.java.ivy import Artifact, Progress, module_of
from keelman.runtime.java.maven import KAFKA_BROKER, Lock, cached, jars

CONTENTS = {"one-1.0.jar": b"first jar", "two-2.0.jar": b"the second"}


def pinned(artifact: str, version: str) -> Artifact:
    content = CONTENTS[f"{artifact}-{version}.jar"]
    return Artifact("org.example", artifact, version, len(content), hashlib.sha256(content).hexdigest())


LOCK = Lock("example-1.0", ("org.example:one:1.0",), (pinned("one", "1.0"), pinned("two", "2.0")))


class Source:
    """Replaces Ivy: writes the files that it has and records the requested artifacts."""

    def __init__(self, spoil: Callable[[int, str], bytes | None] = lambda call, file: CONTENTS[file]) -> None:
        self.asked: list[list[str]] = []
        self._content = spoil

    async def __call__(self, lock: Lock, folder: Path, progress: Progress) -> None:
        self.asked.append([a.file for a in lock.artifacts])
        await asyncio.sleep(0)
        for artifact in lock.artifacts:
            content = self._content(len(self.asked), artifact.file)
            if content is None:
                raise Unavailable(f"no {artifact.file} here")
            (folder / artifact.file).write_bytes(content)


async def test_fetched_once_and_then_read_from_the_cache(tmp_path: Path) -> None:
    source = Source()
    assert cached(LOCK, tmp_path) is None
    actual_jars = await jars(LOCK, cache=tmp_path, fetch=source)
    assert [p.read_bytes() for p in actual_jars] == list(CONTENTS.values())
    assert await jars(LOCK, cache=tmp_path, fetch=source) == actual_jars == cached(LOCK, tmp_path)
    assert source.asked == [["one-1.0.jar", "two-2.0.jar"]]


async def test_many_at_once_fetch_once(tmp_path: Path) -> None:
    source = Source()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(jars(LOCK, cache=tmp_path, fetch=source)) for _ in range(5)]
    assert len({t.result() for t in tasks}) == 1
    assert len(source.asked) == 1


async def test_only_the_wrong_one_is_fetched_again(tmp_path: Path) -> None:
    source = Source(lambda call, file: b"spoilt!!!!" if call == 1 and file == "two-2.0.jar" else CONTENTS[file])
    lines: list[str] = []
    actual_jars = await jars(LOCK, cache=tmp_path, fetch=source, progress=lines.append)
    assert actual_jars[1].read_bytes() == CONTENTS["two-2.0.jar"]
    assert source.asked[1:] == [["two-2.0.jar"]]
    assert lines == ["fetching again: org.example:two:2.0"]


async def test_a_second_wrong_answer_is_an_error_that_names_it_and_leaves_nothing(tmp_path: Path) -> None:
    source = Source(lambda call, file: b"spoilt" if file == "two-2.0.jar" else CONTENTS[file])
    with pytest.raises(Unavailable) as caught:
        await jars(LOCK, cache=tmp_path, fetch=source)
    assert "org.example:two:2.0" in caught.value.message
    assert LOCK.artifacts[1].sha256 in caught.value.message
    assert hashlib.sha256(b"spoilt").hexdigest() in caught.value.message
    assert len(source.asked) == 2
    assert not LOCK.folder(tmp_path).exists()
    assert [p for p in (tmp_path / "jars").iterdir() if p.is_dir()] == []


async def test_a_source_that_fails_twice_is_told_in_its_own_words(tmp_path: Path) -> None:
    source = Source(lambda call, file: None)
    with pytest.raises(Unavailable, match=r"no one-1\.0\.jar here"):
        await jars(LOCK, cache=tmp_path, fetch=source)
    assert len(source.asked) == 2


@pytest.mark.parametrize("damage", ["remove", "shorten", "marker"])
async def test_a_damaged_folder_is_filled_again(tmp_path: Path, damage: str) -> None:
    source = Source()
    actual_jars = await jars(LOCK, cache=tmp_path, fetch=source)
    if damage == "remove":
        actual_jars[0].unlink()
    elif damage == "shorten":
        actual_jars[0].write_bytes(b"f")
    else:
        (actual_jars[0].parent / ".complete").write_text("another lock")
    assert cached(LOCK, tmp_path) is None
    assert await jars(LOCK, cache=tmp_path, fetch=source) == actual_jars
    assert actual_jars[0].read_bytes() == CONTENTS["one-1.0.jar"]
    assert len(source.asked) == 2


async def test_cancelled_in_the_middle_nothing_is_left(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def never(lock: Lock, folder: Path, progress: Progress) -> None:
        (folder / "one-1.0.jar").write_bytes(CONTENTS["one-1.0.jar"])
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(jars(LOCK, cache=tmp_path, fetch=never))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [p for p in (tmp_path / "jars").iterdir() if p.is_dir()] == []
    assert len(await jars(LOCK, cache=tmp_path, fetch=Source())) == 2


def test_another_content_has_another_folder(tmp_path: Path) -> None:
    other = Lock(LOCK.name, LOCK.roots, LOCK.artifacts[:1])
    assert other.folder(tmp_path) != LOCK.folder(tmp_path)
    assert LOCK.folder(tmp_path).name.startswith("example-1.0-")


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    LOCK.write(tmp_path / "lock")
    assert Lock.read(tmp_path / "lock") == LOCK
    (tmp_path / "lock").write_text("{}")
    with pytest.raises(FailedPrecondition, match="cannot be read"):
        Lock.read(tmp_path / "lock")


def test_the_brokers_lock_pins_every_jar() -> None:
    lock = Lock.read(KAFKA_BROKER)
    names = {a.artifact: a for a in lock.artifacts}
    assert lock.name == "kafka-4.3.0"
    assert names["kafka_2.13"].version == "4.3.0"
    assert names["log4j-slf4j-impl"].version == names["log4j-core"].version, "a binding must match its log4j"
    assert all(len(a.sha256) == 64 and a.size > 0 for a in lock.artifacts)


def test_coordinates_have_three_parts() -> None:
    assert Artifact.parse("a.b:c:1").file == "c-1.jar"
    for text in ("a:b", "a::c", "a:b:c:d", ""):
        with pytest.raises(InvalidArgument, match="group:artifact:version"):
            Artifact.parse(text)


def test_the_module_file_asks_for_exactly_these() -> None:
    text = module_of(LOCK.artifacts, transitive=False)
    assert '<dependency org="org.example" name="two" rev="2.0" conf="default->default" transitive="false"/>' in text
    assert text.count("<dependency ") == 2


def test_an_archive_beside_jars_is_told_by_classifier_and_extension(tmp_path: Path) -> None:
    archive = Artifact.parse("a.b:c:1:all@tar.gz")
    assert (archive.file, str(archive)) == ("c-1-all.tar.gz", "a.b:c:1:all@tar.gz")
    assert 'type="tar.gz" ext="tar.gz" m:classifier="all"' in module_of([archive], transitive=False)
    lock = Lock("one", (str(archive),), (archive, Artifact.parse("a.b:d:2")))
    lock.write(tmp_path / "one.lock")
    assert Lock.read(tmp_path / "one.lock") == lock
    assert (tmp_path / "one.lock").read_text().count("classifier") == 1
