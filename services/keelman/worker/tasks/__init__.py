"""The work that this worker has: connectors asked for tasks, tasks begun, followed, restarted and ended."""
