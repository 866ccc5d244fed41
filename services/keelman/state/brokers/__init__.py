"""Asks clusters' brokers on the state service's own account, and takes lost nodes' workers out of their groups."""
