"""Contexts: where they are stored, how they are shown, and which gateway a command calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.cli.client.contexts import Context, Contexts, file_of
from keelman.cli.client.target import place_of
from keelman.cli.main import main
from keelman.model.errors import InvalidArgument, NotFound


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("KEELMAN_GATEWAY", "KEELMAN_CONTEXT", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KEELMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KEELMAN_CONTEXTS", str(tmp_path / "own" / "contexts.json"))
    return tmp_path / "own" / "contexts.json"


def context(*words: str) -> int:
    return main(["context", *words])


def test_a_context_is_kept_for_its_owner_alone_and_its_token_is_never_shown(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "token").write_text("keelman_secret\n")
    words = ("create", "prod", "--gateway", "10.0.0.1:7400", "--mesh", "--token-file", str(tmp_path / "token"), "--use")
    assert context(*words) == 0
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert Contexts.read().known["prod"].token == "keelman_secret"
    assert context("list") == context("show") == context("show", "prod", "-o", "json") == 0
    assert "keelman_secret" not in repr(Contexts.read())
    shown = capsys.readouterr().out
    assert "* prod  10.0.0.1:7400" in shown
    assert "[hidden]" in shown
    assert "keelman_secret" not in shown
    assert context("delete", "prod") == 0
    assert "keelman_secret" not in file.read_text()
    assert place_of(None, None, None).address == "127.0.0.1:7400"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--gateway", "there"), 2, "--gateway: 'there' is not legal: host:port"),
        (("--gateway", "10.0.0.1:1"), 2, "a loopback address, or any with --ca, or with --mesh"),
        (("--gateway", "10.0.0.1:1", "--ca", "/nothing"), 2, "ca: '/nothing' is not legal: a readable PEM file"),
        (("--gateway", "h:1", "--mesh", "--token-file", "/nothing"), 2, "--token-file: '/nothing'"),
    ],
)
def test_a_context_that_cannot_be_is_refused(
    words: tuple[str, ...], code: int, message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert context("create", "x", *words) == code
    assert message in capsys.readouterr().err
    assert not file.exists()


def test_which_gateway_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        assert context("create", name, "--gateway", f"127.0.0.1:{ord(name)}") == 0
    assert context("create", "a", "--gateway", "127.0.0.1:1") == 4
    assert context("use", "a") == 0
    assert place_of(None, None, None).source == "context a"
    monkeypatch.setenv("KEELMAN_CONTEXT", "b")
    assert place_of(None, None, None).source == "context b"
    monkeypatch.setenv("KEELMAN_GATEWAY", "127.0.0.1:5")
    assert place_of(None, None, None).source == "KEELMAN_GATEWAY"
    assert place_of(None, "c", None).address == "127.0.0.1:99"
    assert place_of("127.0.0.1:6", None, None).http == "http://127.0.0.1:7480"
    with pytest.raises(InvalidArgument, match="not together with --context"):
        place_of("127.0.0.1:6", "c", None)
    with pytest.raises(NotFound, match="--context: no context 'd': the contexts are a, b, c"):
        place_of(None, "d", None)
    monkeypatch.delenv("KEELMAN_GATEWAY")
    monkeypatch.delenv("KEELMAN_CONTEXT")
    assert place_of(None, None, tmp_path).source == "default"  # with --home: that machine's gateway
    assert context("use", "none") == 0
    assert place_of(None, None, None).source == "default"


def test_a_file_that_others_may_read_or_that_is_none_is_refused(file: Path) -> None:
    assert context("create", "a", "--gateway", "127.0.0.1:1") == 0
    file.chmod(0o644)
    with pytest.raises(InvalidArgument, match="chmod 600"):
        Contexts.read()
    file.chmod(0o600)
    for text in ("", "[]", '{"contexts": {"a": {}}}', '{"contexts": {"a": {"x": 1}}, "current": ""}'):
        file.write_text(text)
        with pytest.raises(InvalidArgument, match="has written"):
            Contexts.read()


def test_a_folder_that_was_there_stays_as_open_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setenv("KEELMAN_CONTEXTS", str(tmp_path / "shared" / "contexts.json"))
    assert context("create", "a", "--gateway", "127.0.0.1:1") == 0
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o777


def test_https_is_meant_where_the_gateway_is_trusted_by_certificates(file: Path) -> None:
    Contexts.read().write({"a": Context("h:1", ca="/ca.pem"), "b": Context("h:1", http="http://x:1/")}, "")
    assert place_of(None, "a", None).http == "https://h:7480"
    assert place_of(None, "b", None).http == "http://x:1/"


def test_the_file_is_in_the_users_configuration_folder() -> None:
    assert file_of({"XDG_CONFIG_HOME": "/x"}) == Path("/x/keelman/contexts.json")
    assert file_of({}) == Path.home() / ".config" / "keelman" / "contexts.json"
