"""The key file: made once for its owner alone, read again, refused with its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from keelman.model.errors import InvalidArgument
from keelman.state.secrets.sealing import made_key, read_key


def test_a_key_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "state" / "secrets.key"
    with pytest.raises(FileNotFoundError):
        read_key(file)
    key = made_key(file)
    assert len(key) == 32
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert made_key(file) == read_key(file) == key
    assert [one.name for one in file.parent.iterdir()] == ["secrets.key"]


@pytest.mark.parametrize("content", [b"", b"short", b"!" * 44, b"A" * 40])
def test_a_file_without_a_key_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "secrets.key"
    file.write_bytes(content)
    with pytest.raises(InvalidArgument, match=r"state\.key_file: .*secrets\.key"):
        read_key(file)


def test_what_cannot_be_read_or_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"state\.key_file"):
        read_key(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgument, match=r"state\.key_file"):
        made_key(tmp_path / "file" / "secrets.key")


def test_a_key_that_others_may_read_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "secrets.key"
    made_key(file)
    file.chmod(0o640)
    with capture_logs() as logs:
        read_key(file)
    assert [line["event"] for line in logs] == ["key_file_open"]
