"""Answers of old requests are found by their time."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Adds the index."""
    op.create_index("ix_request_time", "request", ["time"])
