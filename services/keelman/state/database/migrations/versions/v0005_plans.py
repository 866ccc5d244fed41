"""Plans are stored; workers know the origin of their specs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Adds the table and the columns; present workers run with their present specs."""
    big = sa.BigInteger()
    op.create_table(
        "plan",
        sa.Column("revision", big, primary_key=True, autoincrement=False),
        sa.Column("time", big, nullable=False),
        sa.Column("changes", sa.JSON(), nullable=False),
    )
    op.add_column("worker_cluster", sa.Column("process_generation", big, nullable=False, server_default="1"))
    op.add_column("worker_cluster", sa.Column("restart", big, nullable=False, server_default="0"))
    op.add_column("workload", sa.Column("trial", sa.JSON(), nullable=False, server_default="{}"))
