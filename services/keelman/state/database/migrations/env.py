"""Runs Alembic's migrations inside the transaction of a connection that it is given."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    render_as_batch=True,
)
context.run_migrations()
