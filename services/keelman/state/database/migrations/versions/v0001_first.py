"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates every table and the rows that exist once."""
    big, text = sa.BigInteger(), sa.Text()
    counter = op.create_table(
        "counter", sa.Column("name", sa.String(), primary_key=True), sa.Column("value", big, nullable=False)
    )
    op.create_table(
        "node",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("create_time", big, nullable=False),
        sa.Column("update_time", big, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("agent_address", sa.String(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("memory_bytes", big, nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("incarnation", sa.String(), nullable=False),
        sa.Column("session", big, nullable=False),
        sa.Column("message", text, nullable=False),
    )
    op.create_table(
        "broker_cluster",
        *_cluster_columns(),
        sa.Column("kafka_cluster_id", sa.String(), nullable=False),
        sa.Column("reachable", sa.Boolean(), nullable=True),
    )
    op.create_table(
        "worker_cluster",
        *_cluster_columns(),
        sa.Column("broker_cluster", sa.String(), sa.ForeignKey("broker_cluster.name"), nullable=False),
    )
    op.create_index("ix_worker_cluster_broker_cluster", "worker_cluster", ["broker_cluster"])
    op.create_table(
        "workload",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("node", sa.String(), sa.ForeignKey("node.name"), nullable=False),
        sa.Column("generation", big, nullable=False),
        sa.Column("goal", sa.String(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("status", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("has_run", sa.Boolean(), nullable=False),
        sa.Column("tried_ports", sa.JSON(), nullable=False),
    )
    op.create_index("ix_workload_node", "workload", ["node"])
    op.create_table(
        "outbox",
        sa.Column("revision", big, primary_key=True, autoincrement=False),
        sa.Column("time", big, nullable=False),
        sa.Column("noun", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
    )
    relay = op.create_table(
        "relay",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("epoch", big, nullable=False),
        sa.Column("beat", big, nullable=False),
        sa.Column("published", big, nullable=False),
    )
    op.create_table(
        "request",
        sa.Column("request_id", sa.String(), primary_key=True),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("time", big, nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
    )
    op.bulk_insert(counter, [{"name": "revision", "value": 0}, {"name": "session", "value": 0}])
    op.bulk_insert(relay, [{"id": 1, "holder": "", "epoch": 0, "beat": 0, "published": 0}])


def _cluster_columns() -> list[sa.Column[object]]:
    return [
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.Column("update_time", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("goal", sa.String(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("status", sa.JSON(), nullable=False),
    ]
