"""How a broker cluster's client properties reach its workers."""

from keelman.state.kafka.properties import completed, for_workers


def test_who_one_is_to_the_brokers_stands_once_and_all_else_under_each_client() -> None:
    properties = for_workers(
        {
            "security.protocol": "SSL", "ssl.truststore.location": "/t", "metadata.max.age.ms": "9", "linger.ms": "1",
            "group.id": "mine", "client.id": "me", "bootstrap.servers": "elsewhere:1",
        }
    )  # fmt: skip
    assert properties == {
        "security.protocol": "SSL",
        "ssl.truststore.location": "/t",
        "metadata.max.age.ms": "9",
        **{f"{client}.metadata.max.age.ms": "9" for client in ("producer", "consumer", "admin")},
        **{f"{client}.linger.ms": "1" for client in ("producer", "consumer", "admin")},
    }


def test_the_workers_own_properties_win() -> None:
    fields = {**for_workers({"security.protocol": "SSL", "linger.ms": "1"}), "producer.linger.ms": "7"}
    document = completed("demo", fields, bootstrap_servers="a:1", brokers=1, listener="http://h:1")
    assert (document["producer.linger.ms"], document["security.protocol"], document["bootstrap.servers"]) == (
        "7",
        "SSL",
        "a:1",
    )
