"""Plugins have an origin and JSON that others keep with them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Adds the column; no plugin had either before."""
    op.add_column("plugin", sa.Column("spec", sa.JSON(), nullable=False, server_default="{}"))
