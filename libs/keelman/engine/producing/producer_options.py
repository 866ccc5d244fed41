"""A copy run's producer options: Java's producer properties, as far as they apply to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keelman.connect.errors import ConfigValueError
from keelman.kafka.batches.producer import ProducerSettings
from keelman.kafka.properties.settings import refusals

BATCH_BYTES = 1_000_000
REQUEST_BYTES = 1_048_576
SMALLEST_BATCH_BYTES = 512
# Bounded so that a copy of any size stays small.
WAITING_BYTES = 12 << 20
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """`batch_bytes` is the size of one record batch, `request_bytes` the most bytes of a single record.

    `codec` is the compression as record batches number it, None if none is configured.
    """

    client: Mapping[str, str]
    client_id: str
    settings: ProducerSettings
    codec: int | None
    batch_bytes: int
    request_bytes: int


def producer_options(
    properties: Mapping[str, str],
    *,
    client_id: str,
    transactional_id: str | None = None,
    transaction_seconds: float = 10.0,
    delivery_seconds: float | None = None,
) -> ProducerOptions:
    """Returns the options of the Java properties in `properties`.

    If these have no `transaction.timeout.ms`, `transaction_seconds` is the time-out of an open transaction, and
    `delivery_seconds` that of its batches, where that is less. `linger.ms`, `acks`,
    `retries` and `enable.idempotence` are ignored: a batch is sent when it is full or at the commit, and is always
    delivered to all replicas in sync, once. So is `transactional.id`: tasks that share one would fence each other for
    ever. Raises ConfigValueError.
    """
    for key, reason in refusals(properties, "producer"):
        raise ConfigValueError(key, properties[key], reason)
    timeout = _number(properties, "transaction.timeout.ms", round(transaction_seconds * 1000), 1)
    within = transaction_seconds if delivery_seconds is None else delivery_seconds
    delivery = _number(properties, "delivery.timeout.ms", 120_000, 1)
    largest = _number(properties, "max.request.size", REQUEST_BYTES, 1)
    batch = min(max(_number(properties, "batch.size", BATCH_BYTES, 0), SMALLEST_BATCH_BYTES), largest)
    memory = _number(properties, "buffer.memory", WAITING_BYTES, 0, most=(1 << 63) - 1)
    if transactional_id is not None:
        # No record may outlive its transaction.
        shortest = timeout if "transaction.timeout.ms" in properties else min(timeout, round(within * 1000))
        delivery = min(delivery, max(1_000, shortest - 1_000))
    else:
        delivery = min(delivery, 30_000)
    settings = ProducerSettings(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout,
        delivery_timeout_ms=delivery,
        # Leaves time for a second try.
        request_timeout_ms=min(_number(properties, "request.timeout.ms", 30_000, 1), max(1, delivery // 2)),
        most_waiting_bytes=min(WAITING_BYTES, max(batch, memory)),
        max_in_flight=_number(properties, "max.in.flight.requests.per.connection", 5, 1),
    )
    codec = properties.get("compression.type", "").strip().lower()
    if codec and codec not in CODECS:
        raise ConfigValueError("compression.type", codec, f"String must be one of: {', '.join(CODECS)}")
    chosen = CODECS[codec] if codec else None
    return ProducerOptions(properties, properties.get("client.id", client_id), settings, chosen, batch, largest)


def _number(properties: Mapping[str, str], key: str, default: int, least: int, most: int = (1 << 31) - 1) -> int:
    text = str(properties.get(key, default)).strip()
    if not text.isdigit() or int(text) > most:
        raise ConfigValueError(key, text, f"Not a number of type {'INT' if most < 1 << 31 else 'LONG'}")
    if int(text) < least:
        raise ConfigValueError(key, text, f"Value must be at least {least}")
    return int(text)
