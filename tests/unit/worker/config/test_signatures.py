"""The signatures of requests between Connect's workers, and their keys, follow the worker's properties."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from keelman.kafka.writer import Record
from keelman.model.errors import InvalidArgument
from keelman.worker.errors import RestError
from keelman.worker.group.session_key import keep_session_key
from keelman.worker.rest.forwarding import signatures
from keelman.worker.storage.store import WorkerStore
from keelman.workers.properties.known_properties import ignored
from keelman.workers.properties.reader import PropertyReader
from keelman.workers.properties.signature_algorithms import accepted_algorithms, check_algorithms


def test_signatures() -> None:
    key = base64.b64encode(b"k" * 64).decode()
    signature = base64.b64encode(hmac.new(b"k" * 64, b"[]", hashlib.sha256).digest()).decode()
    headers = {signatures.AUTHORIZATION: signature, signatures.ALGORITHM: "HmacSHA256"}
    signatures.check(headers, b"[]", key)
    for body, with_key, status in ((b"[1]", key, 403), (b"[]", "", 503)):
        with pytest.raises(RestError) as refused:
            signatures.check(headers, body, with_key)
        assert refused.value.status == status
    accepted = accepted_algorithms({"inter.worker.verification.algorithms": "HmacSHA256, HmacSHA512"})
    longer = base64.b64encode(hmac.new(b"k" * 64, b"[]", hashlib.sha512).digest()).decode()
    headers = {signatures.AUTHORIZATION: longer, signatures.ALGORITHM: "HmacSHA512"}
    signatures.check(headers, b"[]", key, accepted)
    with pytest.raises(RestError, match="does not support the 'HmacSHA512'"):
        signatures.check(headers, b"[]", key)


@pytest.mark.parametrize(
    ("raw", "algorithm", "size"),
    [
        ({}, "HmacSHA256", 64),
        ({"inter.worker.key.generation.algorithm": "HmacSHA512", "inter.worker.key.size": "1023"}, "HmacSHA512", 128),
    ],
)
async def test_a_key_is_made_as_the_properties_say(raw: dict[str, str], algorithm: str, size: int) -> None:
    written: list[Record] = []

    async def write(records: Sequence[Record]) -> None:
        written.extend(records)

    properties = SimpleNamespace(raw=raw, key_ttl_ms=1_000_000)
    for age_ms in (500_000, 5_000_000):
        config = SimpleNamespace(session_key_ms=int(time.time() * 1000) - age_ms)
        store = SimpleNamespace(properties=properties, config=config, config_topic=SimpleNamespace(write=write))
        await keep_session_key(cast(WorkerStore, store))
    ((key, value),) = written
    record = json.loads(value or b"")
    assert (key, record["algorithm"], len(base64.b64decode(record["key"]))) == (b"session-key", algorithm, size)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("inter.worker.key.size", "39"),
        ("inter.worker.key.generation.algorithm", "HmacROT13"),
        ("inter.worker.signature.algorithm", "HmacSHA512"),
        ("inter.worker.verification.algorithms", "HmacSHA256,none"),
    ],
)
def test_what_no_worker_could_use_is_refused(key: str, value: str) -> None:
    reader = PropertyReader({key: value})
    check_algorithms(reader)
    with pytest.raises(InvalidArgument, match=key):
        reader.end()


def test_nothing_is_signed_and_a_worker_says_so() -> None:
    assert "signature" in ignored({"inter.worker.signature.algorithm": "HmacSHA256"}, standalone=False).popitem()[1]
