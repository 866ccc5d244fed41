"""The files of plugins: received, looked into, stored, sent, and swept up where nothing names them."""
