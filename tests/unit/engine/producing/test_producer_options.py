"""Java's producer properties as options of a copy run's producer."""

import pytest

from keelman.connect.errors import ConfigValueError
from keelman.engine.producing.producer_options import producer_options


def test_defaults_are_those_of_a_large_batch_and_a_short_transaction() -> None:
    options = producer_options({}, client_id="c", transactional_id="id")
    assert (
        options.client_id,
        options.codec,
        options.batch_bytes,
        options.request_bytes,
    ) == ("c", None, 1_000_000, 1_048_576)
    assert (options.settings.transactional_id, options.settings.transaction_timeout_ms) == (
        "id",
        10_000,
    )
    assert options.settings.delivery_timeout_ms == 9_000


def test_what_is_given_goes_before() -> None:
    fields = {
        "client.id": "mine",
        "transaction.timeout.ms": "40000",
        "delivery.timeout.ms": "20000",
        "compression.type": "LZ4",
        "batch.size": "20000",
        "linger.ms": "7",
    }
    options = producer_options(fields, client_id="c", transactional_id="id", transaction_seconds=70)
    assert (options.client_id, options.codec, options.batch_bytes) == (
        "mine",
        3,
        20_000,
    )
    assert (options.settings.transactional_id, options.settings.transaction_timeout_ms) == (
        "id",
        40_000,
    )
    assert options.settings.delivery_timeout_ms == 20_000


def test_a_transactional_id_is_the_tasks_own_or_none() -> None:
    fields = {"transactional.id": "own"}
    assert producer_options(fields, client_id="c").settings.transactional_id is None
    assert producer_options(fields, client_id="c", transactional_id="id").settings.transactional_id == "id"


def test_no_batch_is_larger_than_a_request_may_be() -> None:
    options = producer_options({"batch.size": "2000000", "max.request.size": "500000"}, client_id="c")
    assert options.batch_bytes == 500_000


@pytest.mark.parametrize(
    ("key", "value"),
    [("compression.type", "brotli"), ("batch.size", "big"), ("max.request.size", "0"), ("delivery.timeout.ms", "-1")],
)
def test_what_is_not_legal_is_named(key: str, value: str) -> None:
    with pytest.raises(ConfigValueError, match=f"{value} for configuration {key}"):
        producer_options({key: value}, client_id="c")
