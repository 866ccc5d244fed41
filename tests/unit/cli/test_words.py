"""The command line's words: kinds, options, exit codes, addresses; nothing is running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from keelman.cli import kinds
from keelman.cli.app import COMMANDS, app, split_first_argument
from keelman.cli.exits import StartFailed, exit_code_of, print_error
from keelman.cli.kinds import KINDS, cluster_and_name, kind_of
from keelman.cli.main import SERVICES, main
from keelman.connectors.registry import find_connector
from keelman.model import errors
from keelman.model.errors import InvalidArgument, NotFound
from keelman.runtime import main as runtime_main


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_known_by_each_of_its_words(kind: kinds.Kind) -> None:
    for word in (*kind.words, kind.plural.replace("-", "_"), kind.plural.replace("-", ""), kind.plural.upper()):
        assert kind_of(word) is kind


def test_an_unknown_kind_names_the_nearest_and_the_legal_ones() -> None:
    with pytest.raises(InvalidArgument) as raised:
        kind_of("conectors")
    assert "did you mean 'connectors'" in raised.value.message
    assert all(kind.plural in raised.value.message for kind in KINDS)


def test_a_name_may_begin_with_the_cluster_that_is_given_too() -> None:
    for kind in (kinds.CONNECTORS, kinds.WORKERS):
        for name, cluster in (("demo/in", ""), ("demo/in", "demo"), ("in", "demo")):
            assert cluster_and_name(kind, name, cluster) == ("demo", "in")
    assert cluster_and_name(kinds.CONNECTORS, "in") == ("", "in")
    assert cluster_and_name(kinds.CONNECTORS, "demo/a/b", "demo") == ("demo", "a/b")


def test_a_verb_that_a_kind_lacks_names_the_kinds_that_have_it() -> None:
    with pytest.raises(InvalidArgument, match="`pause` works on connectors"):
        kind_of("bc", "pause")


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        (["describe", "connector/demo/in"], ["connector", "demo/in"]),
        (["get", "-o", "json", "copy-run/4f"], ["-o", "json", "copy-run", "4f"]),
        (["delete", "-y", "workload/broker/default/0"], ["-y", "workload", "broker/default/0"]),
        (["configure", "--set=file=/a/b", "cn/d/x"], ["--set=file=/a/b", "cn", "d/x"]),
        (["create", "--config-file", "connectors/x.json", "cn", "d/x"], None),
        (["describe", "cn", "demo/in"], None),
        (["get", "nodes"], None),
        (["preview", "demo/in"], None),
        (["watch", "copy-runs"], None),
        (["get"], None),
        (["label", "node/n1", "a=b/c", "d-"], ["node", "n1", "a=b/c", "d-"]),
        (["update", "--memory", "1", "wc/x"], ["--memory", "1", "wc", "x"]),
    ],
)
def test_what_is_printed_as_a_name_can_be_typed_again(words: list[str], taken: list[str] | None) -> None:
    group: Any = typer.main.get_command(app)
    command = group.get_command(None, words[0])
    assert split_first_argument(command.params, words[1:]) == (words[1:] if taken is None else taken)


def test_no_two_kinds_share_a_word() -> None:
    words = [word for kind in KINDS for word in kind.words]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["get"], 2, "KIND"),
        (["describe", "conector/x"], 2, "did you mean 'connector'"),
        (["get", "nods"], 2, "did you mean 'nodes'"),
        (["get", "nodes", "--ended"], 2, "--ended: not for nodes, only for copy-runs"),
        (["get", "nodes", "--cluster", "c"], 2, "--cluster: not for nodes, only for workers, connectors, copy-runs"),
        (["stop", "wc", "x", "--cluster", "c"], 2, "--cluster: not for worker-clusters, only for workers"),
        (["create", "cn", "o/x", "--cluster", "c", "--set", "connector.class=x"], 2, "belongs to 'o', not to 'c'"),
        (["create", "cn", "x", "--set", "connector.class=x"], 2, "CLUSTER/NAME, or NAME with --cluster WC"),
        (
            ["preview", "o/x", "--cluster", "c"],
            2,
            "belongs to 'o', not to 'c'; a connector 'o/x' of 'c' is typed c/o/x",
        ),
        (["preview", "x", "--worker", "h:1", "--cluster", "c"], 2, "--cluster: not together with --worker"),
        (["get", "nodes", "-o", "xml"], 2, "one of table, wide, json, yaml, name"),
        (["watch", "copy-runs", "-o", "yaml"], 2, "one of table, wide, json"),
        (["preview", "x", "-o", "wide"], 2, "one of text, json, yaml"),
        (["replay", "x", "-o", "name"], 2, "one of text, json, yaml"),
        (["nosuch"], 2, "nosuch"),
        (["gt", "cn"], 2, "Did you mean 'get'? See `keelman --help`"),
        (["get", "nodes", "--gateway", "here"], 2, "host:port"),
        (["get", "nodes", "--gateway", "127.0.0.1:1"], 5, "keelman up"),
        (["create", "bc", "x"], 2, "--nodes"),
        (["create", "tp", "x", "--wait", "--timeout", "6x"], 2, "'6x' is not legal: seconds, as 90, 90s, 1.5m or 1h"),
        (["create", "tp", "x", "--partitions", "0"], 2, "greater than or equal to 1"),
        (["get", "no", "--internal"], 2, "--internal: not for nodes, only for topics"),
        (["create", "wc", "x", "--managed"], 2, "--managed"),
        (["create", "wc", "x", "--wait"], 2, "--start"),
        (["create", "cn", "c/x"], 2, "connector.class"),
        (["create", "workers", "x"], 2, "broker-clusters"),
        (["create", "no", "x", "--count", "2"], 2, "--count: not for nodes, only for worker-clusters"),
        (["create", "no", "x", "--wait"], 2, "--wait: not for nodes"),
        (["create", "wc", "x", "--memory", "5 parsecs"], 2, "e.g. 512MiB"),
        (["update", "wc", "x"], 2, "nothing to change"),
        (["update", "cn", "c/x", "--set", "a=b"], 2, "`update` works on broker-clusters (bc), worker-clusters (wc)"),
        (["update", "no", "x", "--set", "a=b"], 2, "--set: not for nodes"),
        (["update", "no", "x", "--label", "a=b", "--wait"], 2, "--wait: not for nodes"),
        (["update", "wc", "x", "--label", "a=b", "--timeout", "1"], 2, "--timeout: only together with --wait"),
        (["update", "wc", "x", "--label", "a=b", "-o", "xml"], 2, "one of text, table, wide, json, yaml, name"),
        (["scale", "wc", "x"], 2, "--count"),
        (["scale", "bc", "x", "--count", "2"], 2, "`scale` works on worker-clusters"),
        (["label", "no", "x", "ssd"], 2, "key=value to set it, key- to remove it"),
        (["label", "wk", "x/0", "a=b"], 2, "`label` works on broker-clusters"),
        (["stop", "node", "x", "--force"], 2, "`stop` works on"),
        (["drain", "n", "--timeout", "5"], 2, "--timeout: only together with --wait"),
        (["get", "wk", "-l", "a=b"], 2, "-l: not for workers, only for broker-clusters, worker-clusters, nodes"),
        (["get", "no", "--workload", "worker/x/0"], 2, "--workload: not for nodes, only for plans"),
        (["get", "no", "-l", "=b"], 2, "key=value, key!=value, key in"),
        (["configure", "cn", "c/x"], 2, "--config-file"),
        (["configure", "cn", "c/x", "--config-file", "nosuch.json"], 2, "--config-file: nosuch.json: No such file"),
        (["preview", "c/x", "--config-file", "nosuch.json"], 2, "--config-file: nosuch.json: No such file"),
        (["configure", "cn", "c/x", "--set", "a=b", "--timeout", "5"], 2, "--timeout: only together with --wait"),
        (["start", "cn", "c/x", "--timeout", "5"], 2, "--timeout: only together with --wait"),
        (["get", "nodes", "--state", "RUNING"], 2, "for nodes one of ONLINE, "),
        (["get", "plugins", "--state", "RUNNING"], 2, "--state: plugins have no state"),
        (["get", "cn", "--state", "GONE"], 2, "UNASSIGNED, RUNNING, PAUSED, STOPPED, FAILED, RESTARTING"),
        (["get", "cn", "--watch", "-o", "yaml"], 2, "one of table, wide, json"),
        (["get", "cn", "--broker-cluster", "x"], 2, "--broker-cluster: not for connectors, only for topics"),
        (["get", "topics", "--cluster", "x"], 2, "--cluster: not for topics"),
        (["describe", "plan", "x"], 2, "`describe` works on broker-clusters"),
        (["restart", "wk", "c/0", "--failed"], 2, "--failed: not for workers, only for connectors"),
        (["restart", "cn", "c/x", "--task", "1", "--failed"], 2, "--task: not together with --failed"),
        (["validate", "c/x", "--config-file", "nosuch.json"], 2, "--config-file: nosuch.json: No such file"),
        (["validate", "c/x", "-o", "table"], 2, "one of text, json, yaml"),
        (["offsets", "set", "c/x"], 2, "use exactly one of"),
        (["offsets", "set", "c/x", "--at", "t=1"], 2, "TOPIC:PARTITION=OFFSET"),
        (["offsets", "set", "c/x", "--at", "t:0=1", "--file", "f"], 2, "use exactly one of"),
        (["offsets", "set", "c/x", "--partition", "{}"], 2, "--partition and --offset: only together"),
        (["offsets", "set", "c/x", "--partition", "{}", "--offset", "7"], 2, "a JSON object or null"),
        (["offsets", "set", "c/x", "--file", "nosuch.json"], 2, "--file: nosuch.json: No such file"),
        (["offsets", "sett", "c/x"], 2, "Did you mean 'set'"),
        (["peek", "t", "-n", "0"], 2, "greater than or equal to 1"),
        (["up", "--set", "stat.port=1"], 2, "state, gateway, agent"),
        (["up", "--set", "state.prt=1"], 2, "did you mean 'port'"),
        (["up", "--set", "state.port=x"], 2, "a whole number"),
        (["up", "--set", "port"], 2, "service.key=value"),
        (["status"], 1, ""),
        (["down"], 0, ""),
        (["agent", "run", "--nosuch", "1"], 2, "nosuch"),
    ],
)
def test_exit_codes_with_one_line_of_reason(
    words: list[str],
    code: int,
    message: str,
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KEELMAN_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KEELMAN_GATEWAY", raising=False)
    try:
        actual_main = main(words)
    except SystemExit as ended:  # argparse of a service's own main
        actual_main = int(str(ended.code))
    printed = capfd.readouterr()
    assert actual_main == code, printed.err
    assert message in printed.err
    assert "Traceback" not in printed.err
    if message and words[0] not in SERVICES:
        assert printed.err.count("\n") == 1


def test_services_are_those_that_the_runtime_starts() -> None:
    assert SERVICES == runtime_main.SERVICES


def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    helps = []
    for words in (["--help"], ["help"], [], ["create", "--help"], ["help", "create"]):
        assert main(words) == 0
        helps.append(capsys.readouterr().out)
    assert helps[0] == helps[1] == helps[2]
    assert helps[3] == helps[4]
    assert helps[3].startswith("Usage: keelman create")


def test_a_shell_completes_commands() -> None:
    request = {**os.environ, "_KEELMAN_COMPLETE": "complete_bash", "COMP_WORDS": "keelman re", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "keelman.cli"]
    done = subprocess.run(command, env=request, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["resume", "restart", "replay"], done.stderr


def test_a_shell_completes_the_words_of_a_command() -> None:
    def completed(words: str, count: int) -> list[str]:
        request = {
            **os.environ,
            "_KEELMAN_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(count),
        }
        command = [sys.executable, "-m", "keelman.cli"]
        done = subprocess.run(command, env=request, capture_output=True, text=True, check=False)
        return done.stdout.split()

    assert completed("keelman get to", 2) == ["topics", "topic"]
    assert completed("keelman restart conn", 2) == ["connectors", "connector"]
    assert completed("keelman offsets ", 2) == ["get", "set", "reset"]
    assert completed("keelman restart cn x --fai", 4) == ["--failed"]
    assert completed("keelman --ver", 1) == ["--version"]


def test_each_command_has_its_line_in_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    group: Any = typer.main.get_command(app)
    for name, (_, text) in COMMANDS.items():
        command = group.get_command(None, name)
        assert command is not None, name
        assert command.help, name
        assert any(line.split() == [name, *text.split()] for line in lines), name


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    """Measured by processor time, since elapsed time depends on the machine's other work."""
    code = (
        "import sys, time\nfrom keelman.cli.main import main\nmain(['--help'])\n"
        "heavy = {'grpc', 'google.protobuf', 'rich', 'httpx', 'asyncio', 'structlog', 'psutil'} & set(sys.modules)\n"
        "print(time.process_time(), file=sys.stderr)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False) for _ in range(3)]
    assert [ran.returncode for ran in runs] == [0, 0, 0], runs[0].stderr
    assert "Exit codes" in runs[0].stdout
    assert min(float(ran.stderr.split()[0]) for ran in runs) < 1.0


def test_a_command_loads_no_client_that_it_does_not_use(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom keelman.cli.main import main\n"
        f"main(['get', 'nodes', '--gateway', '127.0.0.1:1', '--home', {str(tmp_path)!r}])\n"
        "print({'httpx', 'aiokafka', 'confluent_kafka'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "cannot reach the gateway" in ran.stderr
    assert ran.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidArgument("x"), 2),
        (errors.NotFound("x"), 3),
        (errors.AlreadyExists("x"), 4),
        (errors.FailedPrecondition("x"), 4),
        (errors.Conflict("x"), 4),
        (errors.Unavailable("x"), 5),
        (errors.Internal("x"), 1),
        (StartFailed("x", exit_code=5), 5),
    ],
)
def test_an_error_class_has_one_exit_code(error: errors.KeelmanError, code: int) -> None:
    assert exit_code_of(error) == code


def test_an_error_of_several_lines_is_told_in_one(capsys: pytest.CaptureFixture[str]) -> None:
    print_error("contains the following 2 error(s):\nOne.\nTwo.\n")
    assert capsys.readouterr().err == "keelman: contains the following 2 error(s): One; Two.\n"


def test_plugins_are_told_by_their_classes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotFound) as raised:
        find_connector("FileStremSource")
    assert "PluginDesc{" in raised.value.message
    print_error(raised.value.message)
    printed = capsys.readouterr().err
    assert "which name matches FileStremSource, available connectors are: " in printed
    assert "org.apache.kafka.connect.file.FileStreamSourceConnector, " in printed
    assert "PluginDesc" not in printed
