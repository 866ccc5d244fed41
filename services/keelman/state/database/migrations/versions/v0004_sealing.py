"""Secrets are sealed: a proof shows whether a key is the right one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Adds the table; the rows are sealed at the start that finds it empty."""
    op.create_table(
        "sealing",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("proof", sa.Text(), nullable=False),
    )
