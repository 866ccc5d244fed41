"""Opens a worker's listeners, and judges requests before their handlers: users, origins, paths, methods, types."""
