"""Renews the key with which workers sign requests to each other: the leader makes a new one now and then."""

from __future__ import annotations

import base64
import secrets
import time

from keelman.worker.storage import config_records as records
from keelman.worker.storage.store import WorkerStore
from keelman.workers.properties.signature_algorithms import key_of


async def keep_session_key(store: WorkerStore) -> None:
    """Writes a new key, when there is none or it has been in use for long. The leader's; raises the errors of the
    write."""
    now_ms = int(time.time() * 1000)
    if now_ms - store.config.session_key_ms > store.properties.key_ttl_ms:
        algorithm, size = key_of(store.properties.raw)
        key = base64.b64encode(secrets.token_bytes(size)).decode()
        await store.config_topic.write([records.session_key_record(key, algorithm, now_ms)])
