"""`keelman token create`: what it prints, and what becomes of an access file."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.cli.main import main
from keelman.gateway.access.access_file import read_access_file
from keelman.gateway.caller import GatewayCaller
from keelman.model.access.roles import Role, token_digest


def create(*words: str) -> int:
    return main(["token", "create", *words])


def test_the_gateway_knows_a_token_by_the_lines_that_were_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "access.toml"
    assert create("--name", "ci", "--role", "operator", "--cluster", "a", "--cluster", "b", "--file", str(file)) == 0
    token = capsys.readouterr().out.strip()
    assert create("--name", "eye", "--role", "viewer", "--file", str(file)) == 0
    found = read_access_file("gateway.access_file", file).tokens
    assert found[token_digest(token)] == GatewayCaller("ci", Role.OPERATOR, frozenset({"a", "b"}))
    assert len(found) == 2
    assert token not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    assert create("--name", "ci", "--role", "viewer", "--file", str(file)) == 2
    assert create("--name", "more", "--role", "viewer", "--file", str(file)) == 0
    assert file.stat().st_mode & 0o777 == 0o640


def test_without_a_file_the_lines_are_printed_beside_the_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create("--name", "a", "--role", "admin") == 0
    out, err = capsys.readouterr()
    (tmp_path / "access.toml").write_text(err.partition("\n\n")[2])
    assert [*read_access_file("x", tmp_path / "access.toml").tokens] == [token_digest(out.strip())]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--name", "a", "--role", "root"), "--role: 'root' is not legal: one of viewer, operator, admin"),
        (("--name", 'a"b', "--role", "admin"), "--name: 'a\"b' is not legal"),
        (("--name", "a", "--role", "admin", "--cluster", "A"), "--cluster: 'A'"),
        (("--name", "a", "--role", "admin", "--file", "/"), "--file: '/'"),
    ],
)
def test_what_cannot_be_is_refused(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(*words) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert out == ""
