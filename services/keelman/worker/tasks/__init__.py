"""The work of this worker: connectors queried for tasks, tasks begun, followed, restarted and ended."""
