"""What workers and those who look after them agree on: the rules of a worker's properties."""
