"""Plugins: their facts, their files in chunks, and the name under which this database's files are kept elsewhere."""

from __future__ import annotations

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Adds the tables."""
    op.create_table(
        "plugin",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.Column("update_time", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("file_name", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("md5", sa.String(), nullable=False),
        sa.Column("storage", sa.String(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
    )
    op.create_table(
        "plugin_chunk",
        sa.Column("uid", sa.String(), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )
    installation = op.create_table(
        "installation",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("uid", sa.String(), nullable=False),
    )
    op.bulk_insert(installation, [{"id": 1, "uid": uuid.uuid4().hex}])
