"""Agents report whether they start brokers with TLS."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Adds the column; agents that know report it when they register next."""
    op.add_column("node", sa.Column("broker_tls", sa.Boolean(), nullable=False, server_default=sa.false()))
