"""The real Ivy, which searches a folder instead of the network."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from keelman.model.errors import InvalidArgument, Unavailable
from keelman.runtime.java.ivy import Artifact
from keelman.runtime.java.maven import Lock, jars, relock

pytestmark = pytest.mark.component


def publish(repository: Path, name: str, version: str, needs: str = "") -> Artifact:
    folder = repository / "org" / "example" / name / version
    folder.mkdir(parents=True)
    jar = folder / f"{name}-{version}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("name.txt", f"{name} {version}")
    dependency = (
        f"<dependencies><dependency><groupId>org.example</groupId><artifactId>{needs}</artifactId>"
        "<version>1.0</version></dependency></dependencies>"
        if needs
        else ""
    )
    (folder / f"{name}-{version}.pom").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>org.example</groupId><artifactId>{name}</artifactId><version>{version}</version>{dependency}</project>"
    )
    return Artifact("org.example", name, version, jar.stat().st_size, hashlib.sha256(jar.read_bytes()).hexdigest())


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings = tmp_path / "settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="here"/><resolvers>'
        f'<ibiblio name="here" m2compatible="true" root="{(tmp_path / "repository").as_uri()}/"/>'
        "</resolvers></ivysettings>"
    )
    monkeypatch.setenv("KEELMAN_IVY_SETTINGS", str(settings))
    return tmp_path / "repository"


async def test_exactly_the_pinned_jars_are_fetched_and_checked(repository: Path, tmp_path: Path) -> None:
    publish(repository, "dep", "1.0")
    app = publish(repository, "app", "1.0", needs="dep")
    messages: list[str] = []
    actual_jars = await jars(
        Lock("app-1.0", ("org.example:app:1.0",), (app,)), cache=tmp_path / "cache", progress=messages.append
    )
    assert [p.name for p in actual_jars] == ["app-1.0.jar"]
    assert sorted(p.name for p in actual_jars[0].parent.iterdir()) == [".complete", "app-1.0.jar"]
    assert messages == ["fetching 1 jars of app-1.0", "org.example#app;1.0"]


async def test_a_missing_artifact_is_named_in_ivys_words(repository: Path, tmp_path: Path) -> None:
    app = publish(repository, "app", "1.0")
    absent = Artifact("org.example", "absent", "9.9", 1, "0" * 64)
    with pytest.raises(Unavailable, match=r"org\.example:absent:9\.9") as caught:
        await jars(Lock("app-1.0", (), (app, absent)), cache=tmp_path / "cache")
    assert "Ivy ended with exit code 1" in caught.value.message
    assert "org.example#absent;9.9" in caught.value.message


async def test_a_jar_that_changed_at_its_source_is_refused(repository: Path, tmp_path: Path) -> None:
    app = publish(repository, "app", "1.0")
    (repository / "org/example/app/1.0/app-1.0.jar").write_bytes(b"another")
    with pytest.raises(Unavailable, match="other files than were pinned"):
        await jars(Lock("app-1.0", (), (app,)), cache=tmp_path / "cache")


async def test_relocking_pins_the_roots_and_all_they_need(repository: Path, tmp_path: Path) -> None:
    dep = publish(repository, "dep", "1.0")
    app = publish(repository, "app", "1.0", needs="dep")
    lock = await relock(tmp_path / "lock", ["org.example:app:1.0"])
    assert lock == Lock("app-1.0", ("org.example:app:1.0",), (app, dep)) == Lock.read(tmp_path / "lock")


async def test_a_wrong_settings_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEELMAN_IVY_SETTINGS", str(tmp_path / "none.xml"))
    with pytest.raises(InvalidArgument, match=r"KEELMAN_IVY_SETTINGS: .*none\.xml"):
        await jars(Lock("a-1", (), (Artifact("g", "a", "1", 1, "0"),)), cache=tmp_path / "cache")
