"""`keelman token create`: its output, and its changes to an access file."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from keelman.cli.main import main
from keelman.cli.moments import checked_end
from keelman.gateway.access.access_file import read_access_file
from keelman.gateway.access.last_uses import TOKEN, LastUses
from keelman.gateway.caller import GatewayCaller
from keelman.model.access.roles import Role, token_digest
from keelman.model.errors import InvalidArgument


def create(*words: str) -> int:
    return main(["token", "create", *words])


def test_the_gateway_knows_a_token_by_the_lines_that_were_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "access.toml"
    assert create("--name", "ci", "--role", "operator", "--cluster", "a", "--cluster", "b", "--file", str(file)) == 0
    token = capsys.readouterr().out.strip()
    assert create("--name", "eye", "--role", "viewer", "--file", str(file)) == 0
    tokens = read_access_file("gateway.access_file", file).tokens
    assert tokens[token_digest(token)] == GatewayCaller("ci", Role.OPERATOR, frozenset({"a", "b"}))
    assert len(tokens) == 2
    assert token not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    assert create("--name", "ci", "--role", "viewer", "--file", str(file)) == 2
    assert create("--name", "more", "--role", "viewer", "--file", str(file)) == 0
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change a file's owner")
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    assert create("--name", "a", "--role", "viewer", "--file", str(file)) == 0
    os.chown(file, 1234, 4321)
    assert create("--name", "b", "--role", "viewer", "--file", str(file)) == 0
    assert (file.stat().st_uid, file.stat().st_gid, file.stat().st_mode & 0o777) == (1234, 4321, 0o600)


def test_a_token_has_a_role_that_its_file_defines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "access.toml"
    file.write_text("[roles]\nfixer = ['restart']\n")
    assert create("--name", "a", "--role", "fixer", "--file", str(file)) == 0
    assert create("--name", "b", "--role", "breaker", "--file", str(file)) == 2
    assert "one of viewer, operator, admin, fixer" in capsys.readouterr().err
    assert create("--name", "b", "--role", "fixer") == 2
    (caller,) = read_access_file("gateway.access_file", file).tokens.values()
    assert str(caller.role) == "fixer"


def test_tokens_end_and_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "access.toml"
    for name, more in (("b", ("--expires", "2099-01-31")), ("a", ("--cluster", "x", "--cluster", "w")), ("c", ())):
        assert create("--name", name, "--role", "viewer", "--file", str(file), *more) == 0
    file.write_text(f"{file.read_text()}[[user]]\nname = 'eve'\nrole = 'admin'\nexpires = 2020-01-01T00:00:00Z\n")
    uses = LastUses(file, lambda: datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC))
    uses.note(TOKEN, "a")
    uses.write()
    capsys.readouterr()
    assert main(["token", "list", "--file", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "NAME  BY           ROLE    CLUSTERS  EXPIRES                            LAST USE",
        "a     token        viewer  w,x       -                                  2027-01-02 03:04:05 UTC",
        "b     token        viewer  (all)     2099-01-31 00:00:00 UTC            -",
        "c     token        viewer  (all)     -                                  -",
        "eve   certificate  admin   (all)     2020-01-01 00:00:00 UTC (expired)  -",
    ]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("90d", datetime(2027, 4, 1, tzinfo=UTC)),
        ("12h", datetime(2027, 1, 1, 12, tzinfo=UTC)),
        ("2027-01-31", datetime(2027, 1, 31, tzinfo=UTC)),
        ("2027-01-31T10:00:00+02:00", datetime(2027, 1, 31, 8, tzinfo=UTC)),
    ],
)
def test_ends(text: str, end: datetime) -> None:
    assert checked_end(text, datetime(2027, 1, 1, tzinfo=UTC)) == end


@pytest.mark.parametrize("text", ["0d", "90", "-1d", "999999d9", "2026-12-31", "soon"])
def test_what_is_no_end(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"--expires: .* a time from now such as 90d"):
        checked_end(text, datetime(2027, 1, 1, tzinfo=UTC))


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
