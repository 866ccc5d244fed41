"""One lease for all work that only one state service of a database does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the lease. Those of operations and autoscaling stay, for services of before that run beside."""
    lease = sa.table("lease", sa.column("name"), sa.column("holder"), sa.column("epoch"), sa.column("beat"))
    op.bulk_insert(lease, [{"name": "leader", "holder": "", "epoch": 0, "beat": 0}])
