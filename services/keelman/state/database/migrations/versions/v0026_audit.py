"""A table for the audit of the gateways, its counter, and the progress of its relay."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

BIG = sa.BigInteger()


def upgrade() -> None:
    """Creates the table and its two counters."""
    op.create_table(
        "audit_event",
        sa.Column("number", BIG, primary_key=True, autoincrement=False),
        sa.Column("id", sa.String(), nullable=False, unique=True),
        sa.Column("time", BIG, nullable=False),
        sa.Column("caller", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("refused", sa.Boolean(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
    )
    op.create_index("ix_audit_event_refused", "audit_event", ["refused", "number"])
    counter = sa.table("counter", sa.column("name"), sa.column("value"))
    op.bulk_insert(counter, [{"name": "audit", "value": 0}, {"name": "audit_published", "value": 0}])
