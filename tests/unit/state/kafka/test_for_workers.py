"""The client properties that workers inherit from their broker cluster."""

from keelman.state.kafka.properties import for_workers


def test_where_tokens_may_come_from_goes_with_how_they_are_asked_for() -> None:
    fields = {"sasl.mechanism": "OAUTHBEARER", "keelman.oauthbearer.allowed.urls": "http://a/token"}
    assert for_workers(fields) == fields


def test_what_is_a_clients_own_is_behind_its_prefix() -> None:
    assert for_workers({"linger.ms": "5"}).keys() == {
        f"{client}.linger.ms" for client in ("producer", "consumer", "admin")
    }
