"""The access rules of a worker cluster: those of the page, for its own names."""

import re

import pytest

from keelman.workers.access_rules import AccessRule, rules_of
from support.places import ROOT

ROW = re.compile(r"^\| ([A-Z_]+) \| (\S+) \| (LITERAL|PREFIXED) \| ([A-Z_, ]+) \|", re.MULTILINE)
OF_STATE = ("keelman.events.", "keelman.audit.")
"""Rules that only the state service needs."""


def test_they_are_those_of_the_page() -> None:
    page = [
        AccessRule(resource, name, pattern, tuple(operations.split(", ")))
        for resource, name, pattern, operations in ROW.findall((ROOT / "docs" / "operations.md").read_text())
        if name not in OF_STATE
    ]
    assert list(rules_of("demo", "keelman-demo", {}, ["orders-*"], reports=True)) == page


def test_names_of_the_properties_are_literal() -> None:
    rules = list(rules_of("demo", "mine", {"config.storage.topic": "c"}, ["orders"]))
    topics = [(rule.name, rule.pattern) for rule in rules if rule.resource == "TOPIC"]
    assert topics == [(n, "LITERAL") for n in ("c", "demo.connect-offsets", "demo.connect-status", "orders")]
    assert [rule.name for rule in rules if rule.resource != "TOPIC"] == [
        "mine", "connect-cluster-mine", "mine-", "connect-",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("principal", "word"), [("User:demo", "User:demo"), ("User:CN=de mo,O=x", "'User:CN=de mo,O=x'")]
)
def test_a_rule_is_a_command(principal: str, word: str) -> None:
    rule = AccessRule("TOPIC", "orders-", "PREFIXED", ("CREATE", "DESCRIBE_CONFIGS"))
    assert rule.command("b:9092", principal) == (
        "kafka-acls.sh --bootstrap-server b:9092 --command-config admin.properties --add "
        f"--allow-principal {word} --operation Create --operation DescribeConfigs --topic orders- "
        "--resource-pattern-type prefixed"
    )
