"""The policy for connectors that a state service gives to the workers of its installation."""

from pathlib import Path

import pytest

from keelman.model.errors import InvalidArgument
from keelman.state.settings import Settings

PATHS = "keelman.policy.installation.paths.allowed"
CODE = "keelman.policy.installation.code.by.name"


@pytest.mark.parametrize(
    ("fields", "strict"),
    [
        ({}, False),
        ({"host": "10.0.0.1"}, True),
        ({"trust": "mesh"}, True),
        ({"trust": "installation"}, True),
        ({"trust": "installation", "connector_policy": "open"}, False),
        ({"connector_policy": "strict"}, True),
    ],
)
def test_what_is_open_beyond_loopback_is_strict(tmp_path: Path, fields: dict[str, str], *, strict: bool) -> None:
    rules = Settings(home=tmp_path, **fields).policy_rules
    assert (rules.get(PATHS), rules.get(CODE)) == (("data", "denied") if strict else (None, None))


def test_own_rules_stand_over_those_of_the_kind(tmp_path: Path) -> None:
    own = {"paths.allowed": "data,/srv/in", "classes.denied": "*Spark*"}
    rules = Settings(home=tmp_path, connector_policy="strict", connector_rules=own).policy_rules
    assert (rules[PATHS], rules[CODE]) == ("data,/srv/in", "denied")
    assert rules["keelman.policy.installation.classes.denied"] == "*Spark*"


@pytest.mark.parametrize("own", [{"path.allowed": "/x"}, {"paths.allowed": "x"}, {"code.by.name": "maybe"}])
def test_a_slip_in_a_rule_is_an_error_of_the_setting(tmp_path: Path, own: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match=r"^state\.connector_rules: ") as raised:
        _ = Settings(home=tmp_path, connector_rules=own).policy_rules
    assert next(iter(own)) in raised.value.message
