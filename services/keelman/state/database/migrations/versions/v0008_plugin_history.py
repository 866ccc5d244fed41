"""Worker clusters know the plugins that their workers had before, and whether they went back to them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Adds the column; no cluster had plugins before."""
    op.add_column("worker_cluster", sa.Column("plugin_history", sa.JSON(), nullable=False, server_default="{}"))
