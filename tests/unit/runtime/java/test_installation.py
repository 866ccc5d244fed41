"""Finding Java: the order of the places, too old ones, and the message with the command to type."""

from pathlib import Path

import pytest

from keelman.runtime.java import installation as java
from keelman.runtime.java.installation import Java, JavaMissing, find, install_command, major_of, os_release, released


def make_java(home: Path, version: str, *, code: int = 0) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\nexit {code}\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("1.8.0_392", 8), ("21", 21), ("25-ea", 25), ("11.0.2", 11), ("none", 0)]
)
def test_the_feature_release_of_a_version(version: str, major: int) -> None:
    assert major_of(version) == major


def test_java_home_goes_before_path_and_path_before_the_usual_folders(tmp_path: Path) -> None:
    at_home = make_java(tmp_path / "home", "17.0.1")
    on_path = make_java(tmp_path / "path", "21.0.1")
    usual = make_java(tmp_path / "jvm" / "java-25", "25")
    everything = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    folders = [f"{tmp_path}/jvm/*"]

    assert find(environment=everything, folders=folders).program == at_home
    assert find(environment={"PATH": str(on_path.parent)}, folders=folders).program == on_path
    installation = find(environment={"PATH": str(tmp_path)}, folders=folders)
    assert (installation.program, installation.version, installation.major) == (usual, "25", 25)


def test_an_unusable_java_is_passed_over(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "11.0.2")
    broken = make_java(tmp_path / "broken", "17.0.1", code=1)
    good = make_java(tmp_path / "jvm" / "b17", "17.0.2")
    environment = {"JAVA_HOME": str(old.parent.parent), "PATH": str(broken.parent)}
    assert find(environment=environment, folders=[f"{tmp_path}/jvm/*"]).program == good


def test_a_release_file_spares_a_process(tmp_path: Path) -> None:
    program = make_java(tmp_path / "home", "17.0.1", code=1)
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": ""}
    (tmp_path / "home" / "release").write_text('IMPLEMENTOR="Debian"\nJAVA_VERSION="21.0.2"\n')
    assert find(environment=environment, folders=[], ask=released) == Java(program, "21.0.2")
    (tmp_path / "home" / "release").write_text('IMPLEMENTOR="Debian"\n')
    with pytest.raises(JavaMissing, match="does not run"):
        find(environment=environment, folders=[], ask=released)


def test_the_message_names_what_was_found_what_is_legal_and_what_to_type(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "11.0.2")
    environment = {"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": str(old.parent)}
    with pytest.raises(JavaMissing) as caught:
        find(environment=environment, folders=[])
    message = caught.value.message
    assert "Java 17 or newer" in message
    assert f"{old} is Java 11.0.2" in message
    assert f"JAVA_HOME={tmp_path}/nowhere has no" in message
    assert install_command() in message
    assert caught.value.reason == "JAVA_MISSING"


def test_with_no_java_at_all_it_says_where_it_looked() -> None:
    with pytest.raises(JavaMissing, match="none in JAVA_HOME, on PATH or in the usual folders"):
        find(environment={"PATH": "/nonexistent"}, folders=[])


@pytest.mark.parametrize(
    ("managers", "release", "root", "command"),
    [
        ("apt-get", {"ID": "debian", "VERSION_ID": "12"}, False, "sudo apt-get update && sudo apt-get install -y"),
        ("apt-get", {"ID": "debian", "VERSION_ID": "13"}, True, "apt-get update && apt-get install -y openjdk-21"),
        ("apt-get", {"ID": "ubuntu", "VERSION_ID": "24.04"}, True, "apt-get update && apt-get install -y openjdk-17"),
        ("dnf", {}, False, "sudo dnf install -y java-21-openjdk-headless"),
        ("apk", {}, True, "apk add openjdk17"),
        ("brew", {}, False, "brew install openjdk@17"),
        ("", {}, False, "the package manager of this system"),
    ],
)  # fmt: skip
def test_the_command_for_each_package_manager(managers: str, release: dict[str, str], root: bool, command: str) -> None:
    def which(name: str) -> str | None:
        return f"/usr/bin/{name}" if name == managers else None

    assert install_command(platform="linux", which=which, release=release, root=root).startswith(command)


def test_on_a_mac_it_is_homebrew() -> None:
    assert install_command(platform="darwin", which=lambda name: None) == "brew install openjdk@17"


def test_os_release_is_read_without_its_quotes(tmp_path: Path) -> None:
    (tmp_path / "os").write_text('ID=debian\nVERSION_ID="13"\n\nNAME="Debian GNU/Linux"\n')
    assert os_release(tmp_path / "os") == {"ID": "debian", "VERSION_ID": "13", "NAME": "Debian GNU/Linux"}
    assert os_release(tmp_path / "none") == {}


def test_as_a_program_it_prints_the_command_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert java.main(["--install-command"]) == 0
    assert capsys.readouterr().out.strip() == install_command()
