"""Worker configurations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Adds the table."""
    op.create_table(
        "worker_configuration",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.Column("update_time", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
    )
