"""The main of every service: flags, `config`, exit codes and the messages about wrong usage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from keelman.runtime.main import service_main


def test_config_tells_each_value_and_its_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.toml"
    file.write_text("[gateway]\nhttp-port = 81\n")
    monkeypatch.setenv("KEELMAN_GATEWAY_TRUST", "mesh")
    assert service_main("gateway", ["config", "--port", "70", "--file", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "port = 70  # flag" in lines
    assert f"http_port = 81  # file {file}" in lines
    assert "trust = mesh  # environment KEELMAN_GATEWAY_TRUST" in lines
    assert "request_seconds = 90.0 s  # default" in lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--prt=1"], "unknown setting 'prt' on the command line; did you mean 'port'?"),
        (["run", "--health", "x"], "unknown setting 'health' on the command line"),
        (["run", "--port", "0"], "gateway.port: '0' is not legal: 1 to 65535"),
        (["config", "--file", "/does/not/exist.toml"], "settings file /does/not/exist.toml: No such file"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert service_main("gateway", words) == 2
    problem = capsys.readouterr().err
    assert message in problem
    assert problem.startswith("keelman gateway: ")
    assert problem.count("\n") == 1


@pytest.mark.parametrize("words", [[], ["walk"], ["run", "extra"]])
def test_words_that_mean_nothing_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        service_main("gateway", words)
    assert caught.value.code == 2
    assert "usage: keelman gateway" in capsys.readouterr().err


def test_a_missing_package_is_named_with_the_extra_that_has_it() -> None:
    program = "import sys; sys.modules['starlette'] = None; from keelman.runtime.main import service_main; "
    done = subprocess.run(
        [sys.executable, "-c", program + "sys.exit(service_main('gateway', ['run']))"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "is not installed: pip install 'keelman[gateway]'" in done.stderr
    assert done.stderr.count("\n") == 1
