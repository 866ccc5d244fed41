"""The rules of a worker's properties: those that a worker reads and refuses, and those that the state service refuses
before a worker exists."""
