"""The migrations of the state database, for SQLite and PostgreSQL alike."""
