"""Admin clients that all connectors of a process share: one for each cluster and way to log in.

A worker with thousands of mirrors has one of them looking at its clusters at almost any moment; a client of its own for
each look, with its threads and connections, would cost several times what the look does.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka.admin import AdminClient

UNUSED_SECONDS = 60.0
_Key = tuple[int, tuple[tuple[str, str], ...]]

_clients: dict[_Key, tuple[AdminClient, float]] = {}
_lock = threading.Lock()


def shared_admin(settings: Mapping[str, Any]) -> AdminClient:
    """The client with these settings of librdkafka's. Safe in any thread; to be asked for anew for each look.

    A client that nobody has asked for in a minute is given up when another is asked for. None is carried over a fork,
    and one that logs in by code of ours (OAUTHBEARER) is its asker's alone.
    """
    if any(callable(value) for value in settings.values()):
        return AdminClient(dict(settings))
    now, own = time.monotonic(), os.getpid()
    key = own, tuple(sorted((name, str(value)) for name, value in settings.items()))
    with _lock:
        for other, (_, used) in list(_clients.items()):
            if other[0] == own and now - used > UNUSED_SECONDS:
                del _clients[other]
        client = _clients[key][0] if key in _clients else AdminClient(dict(settings))
        _clients[key] = client, now
    return client
