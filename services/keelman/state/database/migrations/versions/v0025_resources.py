"""One table for the resources of all nouns. A database of the version before, with a table for each noun, is brought
over."""

from __future__ import annotations

import uuid
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = None

BIG, TEXT = sa.BigInteger(), sa.Text()
FORMER = (
    "workload", "worker_cluster", "broker_cluster", "node", "plugin", "plugin_import", "document", "operation", "topic",
    "connector_definition", "dedicated_connector", "worker_configuration", "secret",
)  # fmt: skip
"""The former tables, of which each bears the name of its noun, so that none comes after one that it refers to."""
APART = {"name", "revision"}
ROWS_AT_ONCE = 500


def upgrade() -> None:
    """Creates every table and the rows that exist once; or, where the former tables are, copies these into the new one
    and drops them."""
    connection = op.get_bind()
    has_former = sa.inspect(connection).has_table("node")
    resource = op.create_table(
        "resource",
        sa.Column("noun", sa.String(), primary_key=True),
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("revision", BIG, nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
    )
    if has_former:
        _bring_over(connection, resource)
    else:
        _create_others()


def _bring_over(connection: sa.Connection, resource: sa.Table) -> None:
    for noun in FORMER:
        former = sa.Table(noun, sa.MetaData(), autoload_with=connection, resolve_fks=False)
        for rows in connection.execute(sa.select(former)).mappings().partitions(ROWS_AT_ONCE):
            connection.execute(sa.insert(resource), [_row_of(noun, row) for row in rows])
        op.drop_table(noun)
    lease = sa.table("lease", sa.column("name"))
    op.execute(sa.delete(lease).where(lease.c.name.in_(("operations", "autoscaling"))))


def _row_of(noun: str, former: Any) -> dict[str, Any]:
    payload = {column: value for column, value in former.items() if column not in APART}
    if noun == "worker_cluster":
        del payload["broker_cluster"]  # its spec has it
    return {"noun": noun, "name": former["name"], "revision": former.get("revision", 0), "payload": payload}


def _create_others() -> None:
    counter = op.create_table(
        "counter", sa.Column("name", sa.String(), primary_key=True), sa.Column("value", BIG, nullable=False)
    )
    op.create_table(
        "outbox",
        sa.Column("revision", BIG, primary_key=True, autoincrement=False),
        sa.Column("time", BIG, nullable=False),
        sa.Column("noun", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
    )
    relay = op.create_table(
        "relay",
        sa.Column("id", sa.Integer(), primary_key=True),
        *_columns_of_holder(),
        sa.Column("published", BIG, nullable=False),
    )
    lease = op.create_table(
        "lease",
        sa.Column("name", sa.String(), primary_key=True),
        *_columns_of_holder(),
    )
    op.create_table(
        "sealing",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("proof", TEXT, nullable=False),
        sa.Column("handed_on", TEXT, nullable=False, server_default=""),
        sa.Column("change_time", BIG, nullable=False, server_default="0"),
    )
    op.create_table(
        "request",
        sa.Column("request_id", sa.String(), primary_key=True),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("time", BIG, nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
    )
    op.create_index("ix_request_time", "request", ["time"])
    op.create_table(
        "plan",
        sa.Column("revision", BIG, primary_key=True, autoincrement=False),
        sa.Column("time", BIG, nullable=False),
        sa.Column("changes", sa.JSON(), nullable=False),
    )
    op.bulk_insert(counter, [{"name": "revision", "value": 0}, {"name": "session", "value": 0}])
    op.bulk_insert(relay, [{"id": 1, "holder": "", "epoch": 0, "beat": 0, "published": 0}])
    op.bulk_insert(lease, [{"name": "leader", "holder": "", "epoch": 0, "beat": 0}])
    _create_files()
    _create_trust()


def _columns_of_holder() -> list[sa.Column[Any]]:
    return [
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("epoch", BIG, nullable=False),
        sa.Column("beat", BIG, nullable=False),
    ]


def _create_files() -> None:
    op.create_table(
        "plugin_chunk",
        sa.Column("uid", sa.String(), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("time", BIG, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )
    installation = op.create_table(
        "installation",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("uid", sa.String(), nullable=False),
    )
    op.bulk_insert(installation, [{"id": 1, "uid": uuid.uuid4().hex}])


def _create_trust() -> None:
    op.create_table(
        "authority",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("certificate", TEXT, nullable=False),
        sa.Column("secret", TEXT, nullable=False),
        sa.Column("create_time", BIG, nullable=False),
    )
    op.create_table(
        "join_token",
        sa.Column("name", sa.String(), primary_key=True),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("secret_digest", "role", "member")),
        *(sa.Column(name, BIG, nullable=False) for name in ("create_time", "expire_time", "use_time")),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("used_by", "used_key")),
    )
    op.create_table(
        "certificate",
        sa.Column("holder", sa.String(), primary_key=True),
        sa.Column("key_digest", sa.String(), nullable=False),
        sa.Column("hosts", sa.JSON(), nullable=False),
        sa.Column("issue_time", BIG, nullable=False),
        sa.Column("end_time", BIG, nullable=False),
    )
    op.create_table(
        "signature",
        sa.Column("signature", sa.String(), primary_key=True),
        sa.Column("attempt", sa.String(), primary_key=True),
        sa.Column("time", BIG, nullable=False, index=True),
    )
