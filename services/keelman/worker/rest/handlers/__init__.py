"""The handlers: a request decoded, the operation called, its answer encoded."""
