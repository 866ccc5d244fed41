"""The database: its connection and transactions, the tables that are no noun's, requests that were answered before."""
