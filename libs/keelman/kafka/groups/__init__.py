"""Consumer groups and groups of workers: their protocol, and changes from outside."""
