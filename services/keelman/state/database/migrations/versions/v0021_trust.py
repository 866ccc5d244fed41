"""The CA of the installation, join tokens, and whose certificate a name belongs to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the tables."""
    op.create_table(
        "authority",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("certificate", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "join_token",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("secret_digest", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("member", sa.String(), nullable=False),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.Column("expire_time", sa.BigInteger(), nullable=False),
        sa.Column("use_time", sa.BigInteger(), nullable=False),
        sa.Column("used_by", sa.String(), nullable=False),
        sa.Column("used_key", sa.String(), nullable=False),
    )
    op.create_table(
        "certificate",
        sa.Column("holder", sa.String(), primary_key=True),
        sa.Column("key_digest", sa.String(), nullable=False),
        sa.Column("hosts", sa.JSON(), nullable=False),
        sa.Column("issue_time", sa.BigInteger(), nullable=False),
        sa.Column("end_time", sa.BigInteger(), nullable=False),
    )
