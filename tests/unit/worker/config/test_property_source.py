"""Errors in a worker's properties are reported with file and line, and without secrets."""

import re
from pathlib import Path

import pytest

from keelman.model.errors import InvalidArgument, Unavailable
from keelman.worker.config.source import PROPERTY, PropertySource
from keelman.worker.config.typed import read_properties
from keelman.worker.short_flags import FLAG_OF, wrong
from support.worker_properties import OF_A_GROUP, alone

SECRET = "hidden-4711"
FILE_PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


def written(folder: Path, *lines: str) -> Path:
    """A file that begins with these lines, followed by valid ones."""
    file = folder / "worker.properties"
    file.write_text("\n".join([*lines, *(f"{key}={value}" for key, value in OF_A_GROUP.items())]))
    return file


def told(file: Path | None, **fields: str) -> str:
    """The message with which a worker ends; in `given` an underscore means a point."""
    with pytest.raises(InvalidArgument) as caught:
        read_properties(PropertySource.read(file, {key.replace("_", "."): value for key, value in fields.items()}))
    return caught.value.message


def test_file_line_key_value_and_what_is_legal_are_told(tmp_path: Path) -> None:
    file = written(tmp_path, "# mine", "client.id=a\\", "   b", "", "session.timeout.ms = soon")
    assert told(file) == f"{file}, line 5: session.timeout.ms: 'soon' is not legal: a whole number, at least 1"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_the_editor_counts_them(end: str, tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    lines = [*(f"{key}={value}" for key, value in OF_A_GROUP.items()), "keelman.cpus=1", "", "keelman.cpus=none"]
    file.write_bytes(end.join(lines).encode())
    assert told(file).startswith(f"{file}, line {len(lines)}: keelman.cpus: 'none' is not legal")


def test_of_many_each_has_its_own_place(tmp_path: Path) -> None:
    file = written(tmp_path, "keelman.cpus=none", "key.converter.schemas.enable=x")
    file.write_text(file.read_text().replace("group.id=g\n", ""))
    message = told(file, session_timeout_ms="soon")
    assert message.startswith(f"{file}: 4 things are wrong: group.id is missing: ")
    assert "; --properties: session.timeout.ms: 'soon' is not legal" in message
    assert "; line 1: keelman.cpus: 'none' is not legal" in message
    assert "line 2: " in message


def test_what_is_wrong_with_the_file_itself_has_its_line(tmp_path: Path) -> None:
    file = written(tmp_path, "a=b", f"sasl.jaas.config=\\uzzzz {SECRET}")
    with pytest.raises(
        InvalidArgument, match=rf"^{re.escape(str(file))}, line 2: it is not a \.properties file"
    ) as raised:
        PropertySource.read(file, {})
    assert SECRET not in raised.value.message


def test_a_provider_that_there_is_not_is_told_with_its_line(tmp_path: Path) -> None:
    file = written(tmp_path, "config.providers=v", "config.providers.v.class=com.acme.Vault")
    assert told(file).startswith(f"{file}, line 2: Invalid value com.acme.Vault for configuration config.providers.v")


def test_of_a_converter_that_there_is_not_those_that_there_are_are_told(tmp_path: Path) -> None:
    file = written(tmp_path, "header.converter=com.acme.Nope")
    message = told(file)
    assert message.startswith(f"{file}, line 1: Invalid value com.acme.Nope for configuration header.converter: ")
    assert "Those there are: " in message
    assert "org.apache.kafka.connect.storage.SimpleHeaderConverter" in message
    assert "io.confluent" not in message, "which are none of headers"


@pytest.mark.parametrize("key", ["session.timeout.ms", "listeners", "key.converter", "keelman.restart.backoff.ms"])
def test_of_a_reference_the_value_is_not_shown(key: str, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"x={SECRET}\n")
    reference = f"${{file:{secrets}:x}}"
    file = tmp_path / "worker.properties"
    file.write_text("\n".join(f"{k}={v}" for k, v in {**OF_A_GROUP, **FILE_PROVIDER, key: reference}.items()))
    message = told(file)
    assert SECRET not in message
    assert reference in message
    assert f"{file}, line " in message


def test_an_error_of_later_is_told_with_the_place_of_its_property(tmp_path: Path) -> None:
    file = written(tmp_path, "listeners=http://127.0.0.1:1")
    source = PropertySource.read(file, {})
    with (
        pytest.raises(Unavailable, match=rf"^{re.escape(str(file))}, line 1: listeners: port 1 is taken$"),
        source.named(),
    ):
        raise Unavailable("listeners: port 1 is taken")
    with pytest.raises(Unavailable, match=rf"^{re.escape(str(file))}: admin\.listeners: it is taken$"), source.named():
        raise Unavailable("admin.listeners: it is taken", metadata={PROPERTY: "admin.listeners"})
    with pytest.raises(InvalidArgument, match=r"^c\.properties: name is missing$"), source.named():
        raise InvalidArgument("c.properties: name is missing")


def test_short_flags_are_told_by_their_names() -> None:
    source = PropertySource.read(None, {**OF_A_GROUP, "status.storage.topic": "g g-status"}, FLAG_OF)
    with pytest.raises(InvalidArgument, match=r"^-group: 'g g-status' is not legal: a topic name"):
        read_properties(source)


def test_the_password_of_a_registry_is_not_shown() -> None:
    value = dict.fromkeys(("brokers", "group", "offsets", "configs", "port"), None)
    assert SECRET not in "".join(wrong({**value, "registry": f"ftp://me:{SECRET}@r:1"}))


def test_a_standalone_worker_tells_its_own_file(tmp_path: Path) -> None:
    file = tmp_path / "w.properties"
    file.write_text("".join(f"{k}={v}\n" for k, v in {**alone(tmp_path / "o"), "bootstrap.servers": ""}.items()))
    with pytest.raises(InvalidArgument, match=rf"^{re.escape(str(file))}, line 1: bootstrap\.servers is missing"):
        read_properties(PropertySource.read(file, {}), standalone=True)
