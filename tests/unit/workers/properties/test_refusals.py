"""Properties that are refused before a worker exists are those that the worker refuses at its start, in equal words."""

from collections.abc import Mapping
from pathlib import Path

import javaproperties
import pytest

from keelman.connect.config.providers import SCOPE
from keelman.model.errors import InvalidArgument
from keelman.worker.config.source import PropertySource
from keelman.worker.config.typed import read_properties
from keelman.worker.rest.front.front import peer_tls
from keelman.workers.properties.listeners import server_tls
from keelman.workers.properties.refusals import refusals
from support.certificates import PASSWORD, Authority
from support.worker.refused_properties import ENVIRONMENT, ILLEGAL, REFUSED, TAKEN
from support.worker_properties import OF_A_GROUP

KEYSTORE, PASSWORD_OF = "ssl.keystore.location", "ssl.keystore.password"
CASES = {**REFUSED, **{f"{key} {value}": {key: value} for key, value, _ in ILLEGAL}}


def worker_says(properties: Mapping[str, str], folder: Path) -> list[str]:
    """Returns the refusals of a worker that reads a file of these properties, before it does anything else."""
    file = folder / "worker.properties"
    file.write_text(javaproperties.dumps(properties, timestamp=None))
    try:
        actual_properties = read_properties(PropertySource.read(file, {}))
        peer_tls(actual_properties)
        for admin, listeners in (
            (False, (*actual_properties.listeners.main, *actual_properties.listeners.metrics)),
            (True, actual_properties.listeners.admin or ()),
        ):
            if any(listener.tls for listener in listeners):
                server_tls(actual_properties.raw, admin=admin)
    except InvalidArgument as error:
        return [violation.description for violation in error.violations] or [error.message]
    return []


@pytest.mark.parametrize("case", sorted(CASES))
def test_both_refuse_the_same_in_the_same_words(case: str, tmp_path: Path) -> None:
    store = Authority().issue("worker", "host").write_pkcs12(tmp_path / "k.p12")
    here = {KEYSTORE: str(store), PASSWORD_OF: PASSWORD} if KEYSTORE in CASES[case] else {}
    properties = OF_A_GROUP | CASES[case] | here
    mine = [refusal.description for refusal in refusals(properties)]
    theirs = worker_says(properties, tmp_path)
    assert mine
    for text in mine:
        assert any(text in other for other in theirs), (text, theirs)
    assert len(set(mine)) == len(set(theirs))


@pytest.mark.parametrize("case", sorted(CASES))
def test_each_refusal_has_a_key(case: str) -> None:
    for refusal in refusals(OF_A_GROUP | CASES[case]):
        assert refusal.field, refusal


@pytest.mark.parametrize("case", sorted(TAKEN))
def test_what_the_host_may_make_right_is_not_refused(case: str) -> None:
    assert refusals(OF_A_GROUP | TAKEN[case]) == ()


@pytest.mark.parametrize("scope", ["", "db", "*", "prod/*,shared", " prod/* , a+b=c.d@e_f-g "])
def test_a_scope_names_secrets_as_an_account_does(scope: str) -> None:
    assert refusals(OF_A_GROUP | {SCOPE: scope}) == ()


def test_the_worker_itself_does_not_find_out_to_which_secrets_it_is_bound() -> None:
    actual_refusals = refusals(OF_A_GROUP | ENVIRONMENT | {SCOPE: "${env:SCOPE}"})
    assert [actual_refusal.field for actual_refusal in actual_refusals] == [SCOPE]


def test_secrets_are_hidden_in_what_is_refused() -> None:
    url = "https://me:s3cret-word@tokens.example/token"
    fields = {
        "sasl.oauthbearer.token.endpoint.url": url,
        "keelman.oauthbearer.allowed.urls": "https://tokens.example",
        "producer.ssl.keystore.key": "k1",
    }
    (refusal,) = refusals(OF_A_GROUP | fields)
    assert "s3cret-word" not in refusal.description
    assert "//[hidden]@tokens.example" in refusal.description
