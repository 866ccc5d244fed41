"""What copies inside a slot: the slot itself, the task loop, transactions, sink commit."""
