"""The copy engine inside a slot: the slot itself, the task loop, transactions, sink commit."""
