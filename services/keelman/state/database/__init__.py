"""The database: its connection and transactions, the tables that belong to no noun, the answers to repeated
requests."""
