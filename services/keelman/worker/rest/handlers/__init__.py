"""The handlers: a request decoded, what it asks for called, its answer encoded."""
