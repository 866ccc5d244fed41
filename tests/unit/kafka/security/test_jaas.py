"""sasl.jaas.config, compared with Java's results for the same texts."""

import json

import pytest

from keelman.kafka.security.jaas import ALLOWED, PLAIN, parse
from keelman.model.errors import InvalidArgument
from support.places import RECORDED_FOLDER

MECHANISMS = ("PLAIN", "SCRAM-SHA-256, SCRAM-SHA-512", "OAUTHBEARER")
RECORDED = json.loads((RECORDED_FOLDER / "data" / "clients.json").read_text())["jaas"]


@pytest.mark.parametrize("case", RECORDED, ids=range(len(RECORDED)))
def test_it_is_read_as_java_reads_it(case: dict[str, object]) -> None:
    text = str(case["text"])
    if case.get("module", PLAIN) not in ALLOWED:
        with pytest.raises(InvalidArgument, match=r"Kerberos \(GSSAPI\) is not supported"):
            parse(text)
    elif "error" in case:
        with pytest.raises(InvalidArgument) as raised:
            parse(text)
        java = str(case["error"]).partition(" The system property")[0].removesuffix(".")
        message = raised.value.message
        assert message.startswith(f"sasl.jaas.config: {java}; legal is one login module with its options, MODULE")
        assert all(f"{module} ({mechanism}" in message for module, mechanism in zip(ALLOWED, MECHANISMS, strict=True))
    else:
        module = parse(text)
        assert module.name == case["module"]
        assert f"LoginModuleControlFlag: {module.flag}" == case["flag"]
        assert module.options == case["options"]


@pytest.mark.parametrize("name", ["JndiLoginModule", "LdapLoginModule"])
def test_modules_behind_known_holes_are_refused_wherever_they_stand(name: str) -> None:
    evil = f'com.sun.security.auth.module.{name} required x="y";'
    for text in (evil, f'{PLAIN} required username="a" password="b"; {evil}'):
        with pytest.raises(InvalidArgument, match=f"{name} is not allowed"):
            parse(text)


def test_nobody_is_shown_a_secret() -> None:
    text = f'{PLAIN} required username="alice" password="hidden";'
    assert "hidden" not in repr(parse(text))
    with pytest.raises(InvalidArgument) as raised:
        parse(text.removesuffix(";"))
    assert "hidden" not in str(raised.value)
