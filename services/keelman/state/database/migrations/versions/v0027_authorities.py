"""Several CAs, each with its role; and for each certificate its CA, and the CAs that its holder was given to trust."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Adds the columns. What earlier versions signed has no CA noted: it counts as behind until it is renewed."""
    op.add_column("authority", sa.Column("role", sa.String(), nullable=False, server_default="signing"))
    op.add_column("certificate", sa.Column("issuer", sa.String(), nullable=False, server_default=""))
    op.add_column("certificate", sa.Column("trusted", sa.JSON(), nullable=False, server_default="[]"))
