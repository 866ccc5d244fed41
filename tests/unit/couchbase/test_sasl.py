"""SCRAM against a recorded exchange, and the messages that a client must refuse."""

import pytest

from keelman.couchbase.errors import CouchbaseError
from keelman.couchbase.sasl import Scram, mechanism_of

NONCE = "UG2+y8fy/7kc4DQaGqwSq/wr+Dj/"
FIRST = f"r={NONCE}serverNonce,s=MDEyMzQ1Njc4OWFiY2RlZg==,i=4096".encode()
PROOF = "qRUPsvmLN6idnCYGWQL+lEZNPVaCW/5E25jy0+utH1WnZHQ+71zUTft0tZsWQnhid4E2edbGewAqox56sUg13w=="
VERIFIER = b"v=CVPruah2+4x4gae30qfLw3hAURhnNqAKVhqGjVuRm8BThaOPTaIrW0Moo6AYnxsqKO53M96lNawIKOsnmJd2yw=="


def scram() -> Scram:
    return Scram("SCRAM-SHA512", "Administrator", "password", NONCE)


def test_the_recorded_exchange() -> None:
    single_scram = scram()
    assert single_scram.first() == f"n,,n=Administrator,r={NONCE}".encode()
    assert single_scram.final(FIRST) == f"c=biws,r={NONCE}serverNonce,p={PROOF}".encode()
    single_scram.check(VERIFIER)


def test_a_server_that_does_not_know_the_password_is_refused() -> None:
    single_scram = scram()
    single_scram.final(FIRST)
    with pytest.raises(CouchbaseError, match="signature is wrong"):
        single_scram.check(b"v=AAAA")
    with pytest.raises(CouchbaseError, match="signature is wrong"):
        scram().check(b"v=")


@pytest.mark.parametrize(
    "first", [b"r=other,s=AAAA,i=4096", b"e=unknown-user", FIRST.replace(b"i=4096", b"i=99999999999")]
)
def test_a_first_message_that_is_none(first: bytes) -> None:
    with pytest.raises(CouchbaseError):
        scram().final(first)


def test_names_are_escaped() -> None:
    assert Scram("SCRAM-SHA1", "a=b,c", "", "x").first() == b"n,,n=a=3Db=2Cc,r=x"


def test_a_password_is_not_sent_in_clear() -> None:
    assert mechanism_of(["PLAIN", "SCRAM-SHA1", "SCRAM-SHA256"], "node") == "SCRAM-SHA256"
    with pytest.raises(CouchbaseError, match="offers only PLAIN"):
        mechanism_of(["PLAIN"], "node")
