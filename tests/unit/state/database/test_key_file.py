"""The source of the key: a file that is created once, readable by its owner alone, or a command; refusals name it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from keelman.model.errors import InvalidArgument, Unavailable
from keelman.state.database import key_source
from keelman.state.database.key_source import KeyCommand, made_key, read_keys, replace_keys
from keelman.state.main import main
from keelman.state.settings import Settings


def test_a_key_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "state" / "secrets.key"
    with pytest.raises(FileNotFoundError):
        read_keys(file)
    key = made_key(file)
    assert len(key) == 32
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert made_key(file) == read_keys(file)[0] == key
    assert [path.name for path in file.parent.iterdir()] == ["secrets.key"]


@pytest.mark.parametrize("content", [b"", b"short", b"!" * 44, b"A" * 40, b"A" * 43 + b"=\nshort"])
def test_a_file_without_a_key_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "secrets.key"
    file.write_bytes(content)
    with pytest.raises(InvalidArgument, match=r"state\.key_file: .*secrets\.key"):
        read_keys(file)


def test_what_cannot_be_read_or_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"state\.key_file"):
        read_keys(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgument, match=r"state\.key_file"):
        made_key(tmp_path / "file" / "secrets.key")


def test_a_key_that_others_may_read_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "secrets.key"
    made_key(file)
    file.chmod(0o640)
    with capture_logs() as logs:
        read_keys(file)
    assert [line["event"] for line in logs] == ["key_file_open"]


def test_a_file_of_several_keys_takes_the_place_of_another(tmp_path: Path) -> None:
    file = tmp_path / "secrets.key"
    key = made_key(file)
    replace_keys(file, [b"n" * 32, key])
    assert (read_keys(file), file.stat().st_mode & 0o777) == ((b"n" * 32, key), 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["secrets.key"]


def python(code: str) -> KeyCommand:
    return KeyCommand(f'{sys.executable} -c "{code}"')


def test_a_command_prints_the_key() -> None:
    printed = "print('A' * 43 + '=', 'B' * 42 + 'A=', sep=chr(10))"
    first, second = read_keys(python(printed))
    assert (first, len(second)) == (bytes(32), 32)
    assert str(python("print('token')")) == sys.executable, "arguments may be secret"


@pytest.mark.parametrize(
    ("command", "error", "text"),
    [
        (KeyCommand("/no/such --program"), InvalidArgument, r"state\.key_command: '/no/such' is not legal: a program"),
        (KeyCommand("vault 'token"), InvalidArgument, r"key_command: '\[hidden\]' is not legal: a program and its arg"),
        (python("print('nothing')"), InvalidArgument, r"is not legal: a command that prints 32 bytes of base64"),
        (python("raise SystemExit('sealed vault')"), Unavailable, r"gives no key: it ended with 1: sealed vault"),
    ],
)
def test_a_command_that_gives_no_key_is_refused(command: KeyCommand, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        read_keys(command)


def test_a_command_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_source, "COMMAND_SECONDS", 0.2)
    with pytest.raises(Unavailable, match=r"it has not ended after 0\.2 s"):
        read_keys(python("import time; time.sleep(60)"))


def test_a_key_has_one_source(tmp_path: Path) -> None:
    assert Settings(key_command="vault read key").secrets_key == KeyCommand("vault read key")
    with pytest.raises(InvalidArgument, match=r"key_command: '\[hidden\]' is not legal: empty where key_file is set"):
        assert Settings(key_command="vault read key", key_file=tmp_path / "key").secrets_key


def test_the_arguments_of_a_command_are_shown_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--key-command", "vault read --token t0ken"]) == 0
    assert "t0ken" not in capsys.readouterr().out + repr(KeyCommand("vault read --token t0ken"))
