"""Whether an agent's session is away, as its health reports."""

from __future__ import annotations

import time
from pathlib import Path

from keelman.agent.figures import Figures
from keelman.agent.reporter import Reporter
from keelman.agent.session import AWAY_SECONDS, Session, StateSessions
from keelman.api.node.v1.session_service_pb2 import OpenSessionResponse, Registration


def test_one_that_has_heard_nothing_for_long_is_away_until_it_hears_something(tmp_path: Path) -> None:
    sessions = StateSessions(
        "127.0.0.1:1", Registration(), Reporter(), lambda _: None, Figures(tmp_path), on_secrets=lambda _: None
    )
    assert sessions.is_heard(), "it has just begun"
    sessions.heard = time.monotonic() - AWAY_SECONDS
    assert not sessions.is_heard()
    Session(sessions)._take(OpenSessionResponse())
    assert sessions.is_heard()
