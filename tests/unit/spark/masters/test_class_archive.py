"""The class data archive that a Spark JVM uses, and the jars that belong to it."""

import os
import shutil
from pathlib import Path

import pytest

from keelman.runtime.java.installation import Java
from keelman.spark.masters import class_archive
from keelman.spark.masters.class_archive import archive_of, linked_archive

JAVA = Java(Path("/usr/bin/java"), "17.0.15")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "spark"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of Spark's environments with their jars; the last is in use."""
    environments = [environment(tmp_path / "one")]
    monkeypatch.setattr(class_archive, "spark_jars", lambda: sorted(environments[-1].glob("*.jar")))
    return environments


def environment(folder: Path, like: Path | None = None) -> Path:
    folder.mkdir()
    for name in ("a.jar", "b.jar"):
        if like is None:
            (folder / name).write_text(f"{folder.name} {name}")
        else:
            os.link(like / name, folder / name)
    return folder


def made() -> Path:
    archive = linked_archive(JAVA)
    archive.file.write_text("classes")
    assert archive_of(JAVA).made
    return archive.file


def test_environments_with_the_same_jars_share_an_archive(installed: list[Path], tmp_path: Path) -> None:
    first = made()
    installed.append(environment(tmp_path / "two", like=installed[0]))
    assert archive_of(JAVA).file == first
    shutil.rmtree(installed[0])
    assert archive_of(JAVA).made
    assert [Path(jar).name for jar in archive_of(JAVA).class_path().split(":")] == ["a.jar", "b.jar"]
    assert all(Path(jar).is_file() for jar in archive_of(JAVA).class_path().split(":"))


def test_jars_of_another_time_have_an_archive_of_their_own(installed: list[Path], tmp_path: Path) -> None:
    first = made()
    os.utime(installed[0] / "a.jar", ns=(1, 1))
    assert archive_of(JAVA).file != first
    assert not archive_of(JAVA).made


def test_what_no_environment_has_any_more_is_removed(installed: list[Path], tmp_path: Path, cache: Path) -> None:
    first = made()
    (cache / "classes-0123456789abcdef.jsa").write_text("of a former version")
    installed.append(environment(tmp_path / "two"))
    shutil.rmtree(installed[0])
    second = made()
    assert sorted(cache.iterdir()) == [second.parent]
    assert first != second


def test_where_jars_cannot_be_linked_the_archive_is_for_them_where_they_are(
    installed: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    archive = linked_archive(JAVA)
    assert archive.jars == installed[0]
    archive.file.parent.mkdir(parents=True)
    archive.file.write_text("classes")
    assert archive_of(JAVA) == archive
    assert linked_archive(JAVA) == archive
