"""The chart's Job creates the secrets of an installation in a Kubernetes cluster.

With KEELMAN_KUBE_APISERVER and KEELMAN_ETCD, files of those programs, each test runs on the real API server too.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from keelman.state import main as state
from keelman.state.secrets import kubernetes_secrets
from support.places import ROOT
from support.servers.kubernetes_api import NAMESPACE, TOKEN, ApiServer, pretended, real

pytestmark = pytest.mark.component
PROGRAMS = os.environ.get("KEELMAN_KUBE_APISERVER"), os.environ.get("KEELMAN_ETCD")
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
GROUPS = {"rbac.authorization.k8s.io/v1", "apps/v1", "batch/v1", "policy/v1", "networking.k8s.io/v1"}


def rendered(*settings: str) -> list[dict[str, Any]]:
    """The chart's objects."""
    words = [word for setting in settings for word in ("--set", setting)]
    helm = [str(Path(sys.executable).with_name("helm")), "template", "kn", str(ROOT / "deploy/helm/keelman")]
    done = subprocess.run([*helm, "--namespace", NAMESPACE, *words], capture_output=True, text=True, check=True)
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def of_kind(kind: str) -> dict[str, Any]:
    (entry,) = [entry for entry in rendered() if entry["kind"] == kind]
    return entry


@pytest.fixture(params=["pretended", "real"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ApiServer]:
    if request.param == "pretended":
        readable = tuple(of_kind("Role")["rules"][1]["resourceNames"])
        with pretended(tmp_path, readable) as found:
            yield found
        return
    if None in PROGRAMS:
        pytest.skip("KEELMAN_KUBE_APISERVER and KEELMAN_ETCD name no programs")
    with real(tmp_path, *(Path(str(program)) for program in PROGRAMS)) as found:
        for kind in ("Role", "RoleBinding"):
            url = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/{kind.lower()}s"
            found.call("POST", url, of_kind(kind)).raise_for_status()
        yield found


@pytest.fixture
def job(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arguments of the Job's container, in whose environment this process is."""
    monkeypatch.setattr(kubernetes_secrets, "ACCOUNT", server.account)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    (container,) = of_kind("Job")["spec"]["template"]["spec"]["containers"]
    service, *words = container["args"]
    assert service == "state"
    return words


def test_the_job_creates_what_is_missing_and_changes_nothing(server: ApiServer, job: list[str], capsys) -> None:
    assert state.main(job) == 0
    assert capsys.readouterr().out == "secret/kn-key created\nsecret/kn-database created\n"
    key, database = server.secret("kn-key"), server.secret("kn-database")
    assert len(base64.b64decode(key["key"], validate=False)) == 32
    assert database["url"] == f"postgresql://keelman:{database['password']}@kn-postgresql.{NAMESPACE}.svc/keelman"
    labels = server.call("GET", f"{SECRETS}/kn-key").json()["metadata"]["labels"]
    assert "app.kubernetes.io/instance" not in labels, "Argo CD would delete it"

    assert state.main(job) == 0
    assert capsys.readouterr().out == "secret/kn-key exists: not changed\nsecret/kn-database exists: not changed\n"
    assert (server.secret("kn-key"), server.secret("kn-database")) == (key, database)


def test_a_secret_of_another_form_is_named(server: ApiServer, job: list[str], capsys) -> None:
    there = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kn-database"}, "data": {"password": "eA=="}}
    server.call("POST", SECRETS, there).raise_for_status()
    assert state.main(job) == 1
    assert "the Secret kn-database exists without url: add that" in capsys.readouterr().err
    assert server.secret("kn-database") == {"password": "x"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--key=other"], 'secrets "other" is forbidden'),
        (["--database=kn-database"], "--database-host: '' is not legal: the host of the database"),
    ],
)
def test_what_may_not_be_is_refused_with_the_reason(server, job, capsys, words, message) -> None:
    assert state.main([job[0], "--release=kn", *words]) != 0
    assert message in capsys.readouterr().err


def test_an_account_without_a_valid_token_is_refused(server: ApiServer, job: list[str], capsys) -> None:
    (server.account / "token").write_text("another")
    assert state.main(job) == 1
    assert "401 Unauthorized" in capsys.readouterr().err


def test_answers_are_those_of_kubernetes(server: ApiServer) -> None:
    url, body = f"{SECRETS}/kn-key", {"metadata": {"name": "kn-key"}, "data": {"key": "eA=="}}
    answers = [
        server.call("GET", url, token=TOKEN),
        server.call("POST", SECRETS, body, token=TOKEN),
        server.call("POST", SECRETS, body, token=TOKEN),
        server.call("GET", url, token=TOKEN),
        server.call("GET", f"{SECRETS}/other", token=TOKEN),
        server.call("GET", SECRETS, token=TOKEN),
        server.call("POST", SECRETS, {"metadata": {"name": "No_Name"}}, token=TOKEN),
    ]
    assert [answer.status_code for answer in answers] == [404, 201, 409, 200, 403, 403, 422]
    assert answers[0].json()["message"] == 'secrets "kn-key" not found'
    assert (answers[2].json()["reason"], answers[2].json()["kind"]) == ("AlreadyExists", "Status")
    assert answers[4].json()["message"].startswith('secrets "other" is forbidden: User "system:serviceaccount:data:')
    assert answers[3].json()["data"] == {"key": "eA=="}


def test_a_server_that_is_not_ready_is_asked_again(server: ApiServer, job: list[str], capsys) -> None:
    server.failing[:] = [503, 429]
    assert state.main(job) == 0
    assert "secret/kn-key created" in capsys.readouterr().out


def test_outside_of_a_pod_the_command_tells_so(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(kubernetes_secrets, "ACCOUNT", tmp_path / "none")
    assert state.main(["kubernetes-secrets", "--release=kn", "--key=kn-key"]) == 1
    assert "this is no pod with a service account" in capsys.readouterr().err


def test_the_real_server_takes_all_objects_of_the_chart(server: ApiServer) -> None:
    if server.call("GET", "/version").status_code != 200:
        pytest.skip("the pretended server has Secrets alone")
    for entry in rendered("networkPolicy.brokersFrom[0].podSelector.matchLabels.app=x", "monitoring.boards=true"):
        group = entry["apiVersion"]
        base = f"/apis/{group}" if group in GROUPS else "/api/v1"
        plural = entry["kind"].lower().removesuffix("y") + ("ies" if entry["kind"].endswith("y") else "s")
        answer = server.call("POST", f"{base}/namespaces/{NAMESPACE}/{plural}?dryRun=All&fieldValidation=Strict", entry)
        assert answer.status_code in (201, 409), (entry["kind"], answer.text)
