"""Keeps the keys of the S3 server to which this node delivers logs: from the state service's last message, and over
restarts in a file that only the agent reads."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from keelman.api.node.v1.session_service_pb2 import NodeSecrets
from keelman.runtime.home import write_json
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.redaction import HIDDEN, REDACTOR

log = get_logger()


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of one server; `buckets` is its URL."""

    buckets: str
    access_key_id: str
    secret_access_key: str = field(repr=False)


class BucketKeys:
    """Keeps the keys that the state service sent last; until its first message, those that it sent to the agent
    before."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = _kept(file)
        self._hide()

    def take(self, message: NodeSecrets) -> None:
        """Takes the keys of a message, or their absence."""
        sent = message.bucket_keys
        keys = (
            Keys(sent.buckets, sent.access_key_id, sent.secret_access_key) if message.HasField("bucket_keys") else None
        )
        if keys == self._known:
            return
        self._known = keys
        self._hide()
        try:
            if keys is None:
                self._file.unlink(missing_ok=True)
            else:
                write_json(self._file, keys)
        except OSError as error:
            log.error("bucket_keys_not_kept", file=str(self._file), error=str(error))

    def of(self, buckets: str) -> Keys | None:
        """Returns the keys of a server; None: the agent's own environment has to have them."""
        return self._known if self._known is not None and self._known.buckets == buckets else None

    def _hide(self) -> None:
        if self._known is not None and self._known.secret_access_key:
            REDACTOR.add({self._known.secret_access_key: HIDDEN})


def _kept(file: Path) -> Keys | None:
    try:
        return Keys(**json.loads(file.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        log.error("bucket_keys_unreadable", file=str(file), error=type(error).__name__)
        return None
