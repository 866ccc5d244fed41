"""The variables of its agent's environment that a workload gets."""

from __future__ import annotations

import pytest

from keelman.runtime.processes.environment import clean_environment

GIVEN = {
    "PATH": "/bin", "HOME": "/h", "LANG": "C", "LC_ALL": "C", "TZ": "UTC", "JAVA_HOME": "/j", "PYTHONPATH": "/p",
    "KEELMAN_CACHE": "/c", "KEELMAN_WORKER_PORT": "1", "KEELMAN_WORKER_LOG_LEVEL": "debug", "KEELMAN_SPARK_PORT": "2",
    "KEELMAN_AGENT_PORT": "3", "KEELMAN_CHILD": "/f", "KEELMAN_EXIT_RECORD": "/x", "KAFKA_OPTS": "-D",
    "HTTP_PROXY": "p", "https_proxy": "p", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "r", "SSH_AUTH_SOCK": "/a",
    "LD_PRELOAD": "/evil", "JAVA_TOOL_OPTIONS": "-X", "TMPDIR": "/t", "OLDPWD": "/o", "DATABASE_PASSWORD": "s",
    "SPARK_HOME": "/s",
}  # fmt: skip
ALL = {"PATH", "HOME", "LANG", "LC_ALL", "TZ", "JAVA_HOME", "PYTHONPATH", "KEELMAN_CACHE"}


@pytest.mark.parametrize(
    ("service", "own"),
    [
        ("worker", {"KEELMAN_WORKER_LOG_LEVEL", "KAFKA_OPTS"}),
        ("spark", {"KEELMAN_SPARK_PORT", "SPARK_HOME"}),
        ("broker", {"KAFKA_OPTS"}),
        ("unknown", set()),
    ],
)
def test_named_ones_and_its_own_settings_that_its_file_does_not_say(service: str, own: set[str]) -> None:
    environment = clean_environment(GIVEN, service, in_file=["port"] if service == "worker" else [])
    assert set(environment) == ALL | own
    assert all(GIVEN[name] == value for name, value in environment.items())


def test_further_ones_are_named_by_the_nodes_operator() -> None:
    environment = clean_environment(GIVEN, "broker", passed=("AWS_*", "DATABASE_PASSWORD", "nothing"))
    assert set(environment) == ALL | {
        "KAFKA_OPTS",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "DATABASE_PASSWORD",
    }
