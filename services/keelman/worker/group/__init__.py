"""The group of workers: membership, leadership, and the sharing of work."""
