"""The client properties that workers inherit from their broker cluster."""

from keelman.model.cluster import WorkerEngine
from keelman.state.kafka.properties import for_workers


def test_where_tokens_may_come_from_goes_with_how_they_are_asked_for() -> None:
    fields = {"sasl.mechanism": "OAUTHBEARER", "keelman.oauthbearer.allowed.urls": "http://a/token"}
    assert for_workers(fields) == fields


def test_what_is_a_clients_own_is_behind_its_prefix() -> None:
    assert for_workers({"linger.ms": "5"}).keys() == {
        f"{client}.linger.ms" for client in ("producer", "consumer", "admin")
    }


def test_kafka_connects_own_workers_do_not_pass_on_how_they_log_in() -> None:
    client_properties = {"security.protocol": "SSL", "ssl.keystore.key": "key"}
    names = {f"{prefix}{key}" for prefix in ("", "producer.", "consumer.", "admin.") for key in client_properties}
    assert for_workers(client_properties, WorkerEngine.KAFKA_CONNECT).keys() == names
