"""The files in deploy/ fit the software: their flags, metrics and files exist."""

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml

from keelman.cli.app import app
from keelman.runtime.main import Program, add_flags
from keelman.runtime.settings import load
from support.places import ROOT

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
BOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
CHART = DEPLOY / "helm" / "keelman"
HELM = Path(sys.executable).with_name("helm")
KUBERNETES = ("1.32", "1.34", "1.37")
WITHOUT_SCHEMA = {"PodMonitor", "PrometheusRule"}
"""Kinds of Prometheus' operator."""
LATER = "10.1.2.3"
"""The value of each variable that refers to a field of the pod or to a secret."""
NAME = re.compile(r"\bkeelman_[a-z_]+")


def known_metrics() -> set[str]:
    """The metrics of the documentation, which has all metrics that exist (checked by a test of its own)."""
    return set(re.findall(r"^\| `(keelman_[a-z_]+)` \|", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE))


def expressions() -> list[tuple[str, str]]:
    """The place and the PromQL expression of each alert and panel."""
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    actual_expressions = [(rule["alert"], rule["expr"]) for rule in rules]
    for file in BOARDS:
        board = json.loads(file.read_text())
        actual_expressions += [(f"{file.name}: {p['title']}", t["expr"]) for p in board["panels"] for t in p["targets"]]
        actual_expressions += [(f"{file.name}: {v['name']}", v["query"]) for v in board["templating"]["list"]]
    return actual_expressions


@pytest.mark.parametrize("unit", UNITS, ids=lambda file: file.stem)
def test_a_unit_starts_a_service_with_flags_that_it_has(unit) -> None:
    (start,) = re.findall(r"^ExecStart=(.+)$", unit.read_text(), re.MULTILINE)
    program, service, run, *flags = start.split()
    assert (program.rpartition("/")[2], run) == ("keelman", "run")
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_flags(parser, Program.of(service).settings)
    assert str(vars(parser.parse_args(flags))["file"]) == f"/etc/keelman/{service}.toml"
    text = unit.read_text()
    assert ("KillMode=process" in text) == (service == "agent"), "workloads outlive the agent"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda file: file.stem)
def test_systemd_takes_a_unit(unit, tmp_path) -> None:
    program = tmp_path / "keelman"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = tmp_path / unit.name
    path.write_text(unit.read_text().replace("/opt/keelman/bin/keelman", str(program)))
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if unit.name in line]
    assert ours == []


def test_alerts_and_boards_ask_for_metrics_that_there_are() -> None:
    present_known_metrics = known_metrics()
    assert len(present_known_metrics) > 30
    assert {
        where: NAME.findall(text) for where, text in expressions() if set(NAME.findall(text)) - present_known_metrics
    } == {}


def test_an_alert_says_what_it_is_and_what_to_do() -> None:
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]
            assert rule["annotations"]["summary"], rule["alert"]
            assert rule["annotations"]["remedy"], rule["alert"]


def test_an_alerts_remedy_is_a_command_with_options_that_it_has() -> None:
    group: Any = typer.main.get_command(app)
    for name, rest in re.findall(r"keelman ([a-z]+)([^;.,]*)", ALERTS.read_text()):
        command = group.get_command(None, name)
        assert command is not None, name
        options = {option for parameter in command.params for option in parameter.opts}
        assert {*re.findall(r"--[a-z][a-z-]*", rest)} <= options, name


def test_a_wheel_is_installed_with_all_that_services_need() -> None:
    pages = (DEPLOY / "container" / "Containerfile", ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    installs = [
        line for page in pages for line in page.read_text().splitlines() if "install" in line and ".whl" in line
    ]
    assert len(installs) >= 3
    assert [line for line in installs if ".whl)[all]" not in line and ".whl[all]" not in line] == []


def test_boards_have_ids_of_their_own() -> None:
    boards = [json.loads(file.read_text()) for file in BOARDS]
    assert len({board["uid"] for board in boards}) == len(boards) == 2
    for board in boards:
        ids = [panel["id"] for panel in board["panels"]]
        assert len(ids) == len(set(ids))


def rendered(*settings: str) -> list[dict[str, Any]]:
    """The chart's objects with some values set."""
    words = [word for setting in settings for word in ("--set", setting)]
    process = subprocess.run([HELM, "template", "kn", CHART, *words], capture_output=True, text=True, check=True)
    return [document for document in yaml.safe_load_all(process.stdout) if document]


CHOICES = [
    (),
    ("gateway.accessSecret=access", "state.replicas=1", "gateway.replicas=1", "database.urlSecret=db"),
    ("state.keySecret=key", "state.settings.session_timeout_seconds=12", "agent.settings.limits=watchdog"),
    ("networkPolicy.enabled=false", "gateway.openAccess=true", "agent.nodeSelector.role=copy"),
    (
        "networkPolicy.brokersFrom[0].podSelector.matchLabels.app=x",
        "networkPolicy.gatewayFrom[0].podSelector.matchLabels.app=y",
        "networkPolicy.metricsFrom[0].podSelector.matchLabels.app=z",
        "networkPolicy.executorsFrom[0].namespaceSelector.matchLabels.app=z",
    ),
    (
        "agent.spark.settings.master=spark://spark:7077",
        "agent.spark.settings.pack=/srv/pack/pack.tar.gz",
        "agent.spark.certificateSecret=spark",
        "agent.spark.packVolume.persistentVolumeClaim.claimName=pack",
    ),
    ("monitoring.podMonitor=true", "monitoring.rules=true", "monitoring.boards=true", "monitoring.labels.release=prom"),
]


def pods_of(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The pods' templates by the names of their owners."""
    return {o["metadata"]["name"]: o["spec"]["template"] for o in objects if "template" in o.get("spec", {})}


def test_the_chart_is_the_same_whenever_it_is_rendered() -> None:
    """Else Argo CD, and `helm template`, would replace keys and passwords of a running installation."""
    assert rendered() == rendered()
    assert [entry for entry in rendered() if entry["kind"] == "Secret"] == []


def test_secrets_that_are_named_need_no_job() -> None:
    objects = rendered("state.keySecret=key", "database.urlSecret=url")
    assert {o["kind"] for o in objects} & {"Job", "Role", "RoleBinding", "ServiceAccount"} == set()


def test_only_agents_need_more_than_a_restricted_namespace_allows() -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    pods = pods_of(rendered())
    assert len(pods) == 5
    for name, template in pods.items():
        spec = template["spec"]
        for container in spec["containers"]:
            context = {**spec.get("securityContext", {}), **container["securityContext"]}
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"]["drop"] == ["ALL"]
            assert context["seccompProfile"] == {"type": "RuntimeDefault"}
            if name != "kn-agent":
                assert context["runAsNonRoot"] is True, name
                assert "add" not in context["capabilities"], name
        kinds = {next(iter(v.keys() - {"name"})) for v in spec.get("volumes", ())}
        assert kinds <= {"emptyDir", "secret", *(["hostPath"] if name == "kn-agent" else [])}, name


def test_each_container_is_looked_at() -> None:
    for name, template in pods_of(rendered()).items():
        probes = {probe for c in template["spec"]["containers"] for probe in c if probe.endswith("Probe")}
        if not name.startswith("kn-secrets-"):
            assert probes >= {"startupProbe", "readinessProbe"}, name
            assert name == "kn-postgresql" or "livenessProbe" in probes, name


@pytest.mark.parametrize("settings", CHOICES, ids=[" ".join(settings) or "as it is" for settings in CHOICES])
def test_the_chart_makes_objects_that_kubernetes_takes(settings) -> None:
    objects = rendered(*settings)
    for kubernetes_object in objects:
        for version in KUBERNETES if kubernetes_object["kind"] not in WITHOUT_SCHEMA else ():
            kubernetes_validate.validate(kubernetes_object, version, strict=True)
    names = [(entry["kind"], entry["metadata"]["name"]) for entry in objects]
    assert len(names) == len(set(names))
    pods = pods_of(objects)
    present = {name for name in pods if not name.startswith("kn-secrets-")}
    assert present - {"kn-postgresql"} == {"kn-state", "kn-gateway", "kn-agent"}
    for entry in objects:
        if entry["kind"] == "Service":
            chosen = [p for p in pods.values() if entry["spec"]["selector"].items() <= p["metadata"]["labels"].items()]
            assert len(chosen) == 1, entry["metadata"]["name"]


@pytest.mark.parametrize("settings", CHOICES, ids=[" ".join(settings) or "as it is" for settings in CHOICES])
def test_the_charts_containers_are_given_settings_that_there_are(settings) -> None:
    for kubernetes_object in rendered(*settings):
        for container in kubernetes_object.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
            service, *run = container.get("args", ["postgresql"])
            if service == "postgresql" or run[0] == "kubernetes-secrets":
                continue
            assert run == ["run"]
            fields = {e["name"]: e.get("value", LATER) for e in container["env"]}
            left = {name for name in fields if name.startswith("KEELMAN")}
            for program in (service, "spark") if service == "agent" else (service,):
                present = load(Program.of(program).settings, program, environment=fields)
                origins = {o.key for o in present.origins if o.source.startswith("environment")}
                left -= {f"KEELMAN_{program.upper()}_{key.upper()}" for key in origins}
            assert left == set()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("state.replicas=0", "replicas"),
        ("stat.replicas=1", "stat"),
        ("trust=nobody", "trust"),
        ("agent.hostPath=relative", "hostPath"),
        ("state.settings.A-B=1", "A-B"),
        ("agent.spark.settings.master=spark://spark:7077", "certificateSecret"),
    ],
)
def test_the_chart_refuses_what_is_not_legal(setting, message) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        rendered(setting)
    assert message in refused.value.stderr


def test_nothing_is_started_again_for_what_another_process_lacks() -> None:
    """Liveness only checks that the process lives: health depends on other processes, which a restart seldom mends."""
    for file in sorted((CHART / "templates").glob("*.yaml")):
        lines = file.read_text().splitlines()
        looked_at = [lines[n + 1].strip() for n, line in enumerate(lines) if "livenessProbe:" in line]
        alive = re.compile(r"httpGet: \{path: /healthz, port: http\}|grpc: \{port: \d+, service: live\}")
        assert [text for text in looked_at if not alive.fullmatch(text)] == [], file.name
