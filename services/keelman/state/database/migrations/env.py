"""Runs Alembic's migrations inside the transaction of a connection that it is given."""

from __future__ import annotations

from alembic import context
from sqlmodel import SQLModel

from keelman.state.database import tables  # noqa: F401  (fills the metadata)
from keelman.state.nouns import registry  # noqa: F401  (so do the nouns)

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=SQLModel.metadata,
    render_as_batch=True,
)
context.run_migrations()
