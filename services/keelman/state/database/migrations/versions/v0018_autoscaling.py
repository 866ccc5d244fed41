"""Worker clusters know how they were scaled last; the lease of the one process that scales them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Adds the column and the lease; no cluster was scaled before."""
    op.add_column("worker_cluster", sa.Column("scaling", sa.JSON(), nullable=False, server_default="{}"))
    lease = sa.table("lease", sa.column("name"), sa.column("holder"), sa.column("epoch"), sa.column("beat"))
    op.bulk_insert(lease, [{"name": "autoscaling", "holder": "", "epoch": 0, "beat": 0}])
