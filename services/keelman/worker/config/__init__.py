"""A worker's properties and the secrets in them: read, checked and resolved."""
