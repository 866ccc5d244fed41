"""The files of plugins: received, inspected, stored, sent, and swept up when nothing names them."""
