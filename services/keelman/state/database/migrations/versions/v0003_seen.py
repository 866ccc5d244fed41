"""Broker clusters keep the findings of the last query of their brokers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Adds the column; there are no findings yet."""
    op.add_column("broker_cluster", sa.Column("seen", sa.JSON(), nullable=False, server_default="{}"))
