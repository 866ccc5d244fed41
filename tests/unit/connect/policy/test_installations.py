"""An installation's policy in a few words."""

from __future__ import annotations

from keelman.connect.policy.installations import OPEN, STRICT, rules_of, summary
from keelman.connect.policy.policy import OWN


def test_a_policy_is_named_by_its_kind_and_the_rules_that_differ() -> None:
    assert summary({"group.id": "x"}) == "open"
    assert summary(rules_of(STRICT, {}, field="f")) == "strict"
    loose = rules_of(STRICT, {"paths.allowed": "data,/srv", "code.by.name": "allowed"}, field="f")
    assert summary(loose) == "strict, with its own code.by.name, paths.allowed"
    assert summary({**rules_of(STRICT, {}, field="f"), f"{OWN}classes.denied": "*Sink"}) == (
        "strict, with its own classes.denied"
    )
    assert summary({**rules_of(OPEN, {}, field="f"), f"{OWN}topics.denied": "x"}) == "open, with its own topics.denied"
