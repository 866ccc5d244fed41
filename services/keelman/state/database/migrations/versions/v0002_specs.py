"""Nodes get a spec and an address of their own, workloads limits; clusters and workloads are ended by force."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Adds the columns; present rows get the values of a new row."""
    big = sa.BigInteger()
    op.add_column("node", sa.Column("address", sa.String(), nullable=False, server_default=""))
    op.add_column("node", sa.Column("spec", sa.JSON(), nullable=False, server_default="{}"))
    op.add_column("node", sa.Column("generation", big, nullable=False, server_default="1"))
    op.add_column("node", sa.Column("revision", big, nullable=False, server_default="0"))
    op.add_column("worker_cluster", sa.Column("force", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("workload", sa.Column("limits", sa.JSON(), nullable=False, server_default="{}"))
    op.add_column("workload", sa.Column("force", sa.Boolean(), nullable=False, server_default=sa.false()))
