"""Signatures of requests that were taken already."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the table."""
    op.create_table(
        "signature",
        sa.Column("signature", sa.String(), primary_key=True),
        sa.Column("attempt", sa.String(), primary_key=True),
        sa.Column("time", sa.BigInteger(), nullable=False, index=True),
    )
