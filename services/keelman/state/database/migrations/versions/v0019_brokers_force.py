"""Broker clusters are ended by force, too."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Adds the column; none was stopped by force before."""
    op.add_column("broker_cluster", sa.Column("force", sa.Boolean(), nullable=False, server_default=sa.false()))
