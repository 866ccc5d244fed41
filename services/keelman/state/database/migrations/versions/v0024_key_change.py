"""The key that seals secrets is changed while state services run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Adds the columns by which a key is handed on to the other state services."""
    op.add_column("sealing", sa.Column("handed_on", sa.Text(), nullable=False, server_default=""))
    op.add_column("sealing", sa.Column("change_time", sa.BigInteger(), nullable=False, server_default="0"))
