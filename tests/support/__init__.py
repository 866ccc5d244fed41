"""What tests share: processes to test against, worlds to decide about, connectors to load."""
